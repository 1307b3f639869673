"""What runs the primitives' rules on other things than raw arrays: Tensors, duals, batches."""
