import { defineEndpoint, type Endpoint } from '../endpoint.ts'
import { anyImageErrors } from './image-errors.ts'
import type { ImagesOffer } from './image-operation.ts'
import { interactionImageEndpoint } from './interactions/interaction-image-endpoint.ts'
import { multimodalImageEndpoint } from './multimodal/multimodal-image-endpoint.ts'
import { openaiImageEndpoint } from './openai/openai-image-endpoint.ts'

/**
 * `POST /v1/images/generations`: three shapes of request, by the model (API specification, "Endpoints"). Errors raised
 * before the model is known carry the shapes of all of them.
 */
export const imagesEndpoint = defineEndpoint<{ readonly model: string }, ImagesOffer>({
  id: 'images',
  path: '/v1/images/generations',
  kind: 'image',
  servesUnlisted: ({ images = {} }) => SHAPES.find((shape) => images[shape] !== undefined) ?? false,
  protocols: ({ images = {} }) => SHAPES.filter((shape) => images[shape] !== undefined),
  errors: anyImageErrors,
  shapes: new Map<string, Endpoint>([
    ['multimodal', multimodalImageEndpoint],
    ['interactions', interactionImageEndpoint],
    ['generations', openaiImageEndpoint],
  ]),
  unknownModel: { status: 400, code: 'InvalidParameter' },
  isPaidJob: true,
  parse: neverCalled,
  isStream: neverCalled,
  estimate: neverCalled,
  createOperation: neverCalled,
})

/** The shapes of models without a row, the most common first; a vendor has one or the other. */
const SHAPES = ['generations', 'interactions', 'multimodal'] as const

function neverCalled(): never {
  throw new TypeError('the shape of the model answers for it')
}
