import type { ModelDefinition } from '../define-model.ts'
import { INTERACTIONS_IMAGE_MODELS } from './interactions-image-models.ts'
import { MULTIMODAL_IMAGE_MODELS } from './multimodal-image-models.ts'
import { OPENAI_IMAGE_MODELS } from './openai-image-models.ts'

/** Image models, in the order in which the API specification presents their shapes. */
export const IMAGE_MODELS: readonly ModelDefinition[] = [
  ...MULTIMODAL_IMAGE_MODELS,
  ...INTERACTIONS_IMAGE_MODELS,
  ...OPENAI_IMAGE_MODELS,
]
