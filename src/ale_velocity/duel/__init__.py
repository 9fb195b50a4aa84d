"""`ale-velocity duel A B`: two stacks, measured in alternating fresh processes on one machine."""
