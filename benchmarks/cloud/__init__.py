"""The ground truth of the cloud predictor: MPI programs on simulated servers, and the judgement over what they took."""
