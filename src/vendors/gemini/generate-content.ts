import type { InteractionRequest } from '../../endpoints/images/interactions/interaction-request.ts'
import type { ImageOperation, Vendor } from '../vendor.ts'
import type { GeminiApi } from './api-request.ts'
import { chatDecoder } from './chat-decoder.ts'
import { brokenAnswer, chatFromWire } from './chat-from-wire.ts'
import { chatToWire, SURCHARGES_LEFT_OUT } from './chat-to-wire.ts'
import { countTokens } from './count-tokens.ts'
import { generatedImageFromWire } from './interactions/generated-image-from-wire.ts'
import { GeneratedImageStream } from './interactions/generated-image-stream.ts'
import { generatedImageToWire } from './interactions/generated-image-to-wire.ts'
import { geminiMedia } from './media-tokens.ts'
import { modelAbilities } from './model-abilities.ts'
import { ownsReasoning, thinks } from './reasoning.ts'

/** Creates the operations that both variants of the API offer. */
export function generateContent(
  api: GeminiApi,
): Required<Pick<Vendor, 'chat' | 'tokenCount' | 'media' | 'ownsReasoning'>> {
  return {
    chat: {
      toWire: (call) => chatToWire(call, api),
      leavesOut: SURCHARGES_LEFT_OUT,
      fromWire: chatFromWire,
      brokenAnswer,
      decoder: chatDecoder,
      reasonsUnseen: ({ model, request }) => thinks(request.reasoning_effort, modelAbilities(model.upstream).thinking),
      takesImageUrls: (model) => modelAbilities(model.upstream).fetchesUrls,
      takesFileUrls: (model) => modelAbilities(model.upstream).fetchesUrls,
    },
    tokenCount: countTokens(api),
    media: geminiMedia,
    ownsReasoning,
  }
}

/** Image generation through the method of chat. */
export function generatedImages({ basePath }: GeminiApi): ImageOperation<InteractionRequest> {
  return {
    toWire: (call) => generatedImageToWire(call, basePath),
    fromWire: generatedImageFromWire,
    stream: (call) => new GeneratedImageStream(call),
  }
}
