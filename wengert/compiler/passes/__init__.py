"""What makes a program better: functions from a program to a program."""
