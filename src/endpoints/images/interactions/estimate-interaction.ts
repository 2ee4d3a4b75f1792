import type { Usage } from '../../../core/usage.ts'
import type { ModelFacts } from '../../model-facts.ts'
import { imageSize } from './image-size.ts'
import type { InteractionRequest } from './interaction-request.ts'
import { pictureTokens } from './picture-tokens.ts'
import { referenceImageCount } from './reference-images.ts'

// For models that say nothing: the dearest reference picture that the vendor documents.
const MOST_REFERENCE_TOKENS = 1120

// The gateway's own allowances: words beside the picture, and thoughts, which the vendor counts as output too.
const TEXT_TOKENS = 1024
const THINKING_TOKENS = { high: 8192, usual: 4096 } as const

const THINKING_FIELD = 'generation_config.thinking_level'

/** An upper estimate of one interaction: one picture, the reference pictures, some text, and thoughts where it thinks. */
export function estimateInteraction(request: InteractionRequest, textTokens: number, model: ModelFacts): Usage {
  const references = referenceImageCount(request)
  const inputImageTokens = references * (model.image?.inputTokensPerImage ?? MOST_REFERENCE_TOKENS)
  const most = model.limits.maxOutputTokens ?? Number.POSITIVE_INFINITY
  const outputImageTokens = Math.min(pictureTokens(model, imageSize(request, model)), most)
  return {
    inputTokens: textTokens + inputImageTokens,
    inputImageTokens,
    outputTokens: Math.min(outputImageTokens + TEXT_TOKENS + thinkingTokens(request, model), most),
    outputImageTokens,
    images: 1,
  }
}

function thinkingTokens(request: InteractionRequest, model: ModelFacts): number {
  if (model.image?.refusedFields?.includes(THINKING_FIELD) === true) return 0
  return request.generation_config?.thinking_level === 'high' ? THINKING_TOKENS.high : THINKING_TOKENS.usual
}
