"""Functions of tensors, by the rule that says where their result lies."""
