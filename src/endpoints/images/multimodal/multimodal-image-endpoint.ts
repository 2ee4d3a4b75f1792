import { Buffer } from 'node:buffer'
import { defineEndpoint } from '../../endpoint.ts'
import { jsonSchemaOf } from '../../json-schema.ts'
import { passThrough } from '../../operation.ts'
import { checkRequest } from '../../request-field.ts'
import { requestTexts } from '../../request-texts.ts'
import type { KindOf } from '../../texts.ts'
import { multimodalErrors, refuseOtherShape } from '../image-errors.ts'
import type { ImagesOffer } from '../image-operation.ts'
import { withoutNulls } from '../null-members.ts'
import {
  asInvalidParameter,
  checkAbilities,
  invalidParameter,
  type MultimodalImageRequest,
  pictureSize,
  referenceImages,
} from './multimodal-image-request.ts'
import { multimodalImageSchema } from './multimodal-image-schema.ts'

/** The multimodal shape of `POST /v1/images/generations` (API specification, "Multimodal image request"). */
export const multimodalImageEndpoint = defineEndpoint<MultimodalImageRequest, ImagesOffer>({
  id: 'images',
  path: '/v1/images/generations',
  kind: 'image',
  errors: multimodalErrors,
  isPaidJob: true,
  parse(body, model) {
    const request = asInvalidParameter(() => {
      refuseOtherShape(body, 'multimodal')
      return checkRequest<MultimodalImageRequest>(multimodalImageSchema(), withoutNulls(multimodalImageSchema(), body))
    })
    // A caller that requests a stream could not read the image that it pays for.
    if (isStreamWanted(body)) throw invalidParameter('stream', 'this model does not stream')
    if (model.image !== undefined) checkAbilities(request, model.image)
    return request
  },
  requestSchema: () => jsonSchemaOf(multimodalImageSchema(), 'input'),
  isStream: () => false,
  textBytes: (request) => textOf(request).reduce((sum, text) => sum + Buffer.byteLength(text), 0),
  // The vendor counts only images, and a request generates exactly one.
  estimate: () => ({ images: 1 }),
  priceFields(request, model) {
    const size = pictureSize(request, model)
    return size === undefined ? {} : { size }
  },
  priceFieldNames: ['size'],
  callerUrls: (request) =>
    referenceImages(request).map(({ url, position }) => ({
      url,
      param: `input.messages[0].content[${position}].image`,
    })),
  texts: {
    request: (request) => requestTexts(request, { kindOf, last: ['input', 'parameters'], roleOf: () => 'user' }),
  },
  createOperation({ images }, call) {
    const operation = images?.multimodal
    return operation && passThrough(operation.toWire(call), operation, call)
  },
})

const kindOf: KindOf = (name) => (name === 'text' || name === 'negative_prompt' ? 'text' : undefined)

function isStreamWanted(body: unknown): boolean {
  return (body as { readonly stream?: unknown }).stream === true
}

function textOf({ input, parameters }: MultimodalImageRequest): readonly string[] {
  return [...input.messages[0].content.map(({ text }) => text ?? ''), parameters?.negative_prompt ?? '']
}
