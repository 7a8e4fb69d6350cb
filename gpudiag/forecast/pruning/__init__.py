"""What another pruner would have done."""
