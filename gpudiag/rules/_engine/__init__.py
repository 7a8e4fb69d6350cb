"""What makes a function a rule and a rule's evidence a verdict."""
