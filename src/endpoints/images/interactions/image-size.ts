import type { ModelFacts } from '../../model-facts.ts'
import type { InteractionRequest } from './interaction-request.ts'

// API specification, "Interactions-style image request".
const DEFAULT_SIZE = '1K'

/** The size that is drawn and billed: the one asked for, else the model's own default. */
export function imageSize(request: InteractionRequest, model: ModelFacts): string {
  return request.response_format?.image_size ?? model.image?.defaultSize ?? DEFAULT_SIZE
}
