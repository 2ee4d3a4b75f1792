import { sseData } from '../../wire/sse.ts'
import type { Endpoint } from '../endpoint.ts'
import { openaiErrorObject } from '../error-body.ts'
import { interactionImageEndpoint } from './interactions/interaction-image-endpoint.ts'
import { multimodalImageEndpoint } from './multimodal/multimodal-image-endpoint.ts'
import { openaiImageEndpoint } from './openai/openai-image-endpoint.ts'

/**
 * `POST /v1/images/generations`: three shapes of request, by the model (API specification, "Endpoints"). Errors raised
 * before the model is known carry the shapes of all of them.
 */
export const imagesEndpoint: Endpoint = {
  id: 'images',
  path: '/v1/images/generations',
  kind: 'image',
  dialect: 'either',
  shapes: new Map<string, Endpoint>([
    ['multimodal', multimodalImageEndpoint as Endpoint],
    ['interactions', interactionImageEndpoint as Endpoint],
    ['generations', openaiImageEndpoint as Endpoint],
  ]),
  unknownModel: { status: 400, code: 'InvalidParameter' },
  isPaidJob: true,
  parse: neverCalled,
  isStream: neverCalled,
  estimate: neverCalled,
  billingFields: neverCalled,
  streamError: (error) => sseData(JSON.stringify(openaiErrorObject(error))),
}

function neverCalled(): never {
  throw new TypeError('the shape of the model answers for it')
}
