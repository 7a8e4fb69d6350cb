"""From a diagnosis to ranked recommendations and a plan: what every remedy rests on."""
