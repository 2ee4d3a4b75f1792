import { DASHSCOPE_IMAGE_MODELS } from '../../catalog/models/dashscope-models.ts'
import { GEMINI_IMAGE_MODELS } from '../../catalog/models/gemini-models.ts'
import { OPENAI_IMAGE_MODELS } from '../../catalog/models/openai-models.ts'
import { GatewayError } from '../../core/errors.ts'
import type { ModelFacts } from '../../endpoints/model-facts.ts'
import type { ImageModels } from '../models/image-models.ts'
import type { ModelId } from '../models/model-request.ts'
import type { ImageBuilder } from './image-steps.ts'
import { InteractionImageDraft } from './interaction-image-draft.ts'
import { knownModel } from './known-model.ts'
import { MultimodalImageDraft } from './multimodal-image-draft.ts'
import { OpenAIImageDraft } from './openai-image-draft.ts'

/** What the builder must be told of a model that the package does not know, as its row in the gateway has it. */
export type ImageModelFacts = Pick<ModelFacts, 'protocol' | 'image'>

/**
 * Begins an image request, in the shape of the model.
 * @throws GatewayError `model_not_configured` for a model whose shape is not known.
 */
export function image<const Model extends ModelId<ImageModels>>(
  model: Model,
  facts?: ImageModelFacts,
): ImageBuilder<Model> {
  const { protocol, image: abilities } =
    facts ?? knownModel(model, DASHSCOPE_IMAGE_MODELS, GEMINI_IMAGE_MODELS, OPENAI_IMAGE_MODELS) ?? {}
  const row: ModelFacts = { id: model, limits: {}, ...(abilities === undefined ? {} : { image: abilities }) }
  // Each draft has every step of its shape; the type shows those of the model.
  return draftOf(protocol, row) as never
}

function draftOf(protocol: string | undefined, model: ModelFacts): object {
  switch (protocol) {
    case 'multimodal':
      return new MultimodalImageDraft({ model, references: [], parameters: {} })
    case 'interactions':
      return new InteractionImageDraft({ model, references: [], format: {}, config: {} })
    case 'generations':
      return new OpenAIImageDraft({ model, fields: {} })
    default:
      throw new GatewayError('model_not_configured', {
        message: `The shape of ${model.id} is not known: give its protocol, multimodal, interactions or generations.`,
        param: 'model',
      })
  }
}
