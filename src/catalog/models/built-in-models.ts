import type { ModelDefinition } from '../define-model.ts'
import { CHAT_MODELS } from './chat-models.ts'
import { EMBEDDING_MODELS } from './embedding-models.ts'
import { IMAGE_MODELS } from './image-models.ts'
import { SPEECH_MODELS } from './speech-models.ts'
import { VIDEO_MODELS } from './video-models.ts'

/**
 * Every model id of the API specification. The vendors' own ids are aliases, and a host may override any row. A row whose
 * release date we do not know for certain has `created` 0.
 */
export const BUILT_IN_MODELS: readonly ModelDefinition[] = [
  ...CHAT_MODELS,
  ...EMBEDDING_MODELS,
  ...IMAGE_MODELS,
  ...VIDEO_MODELS,
  ...SPEECH_MODELS,
]
