"""Names of files in a round's folder."""

# The critic's weights.
CRITIC = "critic.safetensors"
# In the folder of the policy: the optimiser's state and what else training goes on with.
TRAINER_STATE = "trainer_state.pt"
