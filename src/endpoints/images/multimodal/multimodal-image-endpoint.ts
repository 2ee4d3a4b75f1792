import { Buffer } from 'node:buffer'
import { sseData } from '../../../wire/sse.ts'
import type { Endpoint } from '../../endpoint.ts'
import { openaiErrorObject } from '../../error-body.ts'
import { checkRequest } from '../../request-field.ts'
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
export const multimodalImageEndpoint: Endpoint<MultimodalImageRequest> = {
  id: 'images',
  path: '/v1/images/generations',
  kind: 'image',
  dialect: 'multimodal',
  isPaidJob: true,
  parse(body, model) {
    const request = asInvalidParameter(() => checkRequest<MultimodalImageRequest>(multimodalImageSchema, body))
    // Whoever asks for events would pay for a picture that he cannot read.
    if (isStreamWanted(body)) throw invalidParameter('stream', 'this model answers as a whole only')
    if (model.image !== undefined) checkAbilities(request, model.image)
    return request
  },
  isStream: () => false,
  textBytes: (request) => textOf(request).reduce((sum, text) => sum + Buffer.byteLength(text), 0),
  // The vendor counts pictures and nothing else, and a request makes exactly one.
  estimate: () => ({ images: 1 }),
  billingFields(request, model) {
    const size = pictureSize(request, model)
    return size === undefined ? {} : { size }
  },
  callerUrls: (request) =>
    referenceImages(request).map(({ url, position }) => ({
      url,
      param: `input.messages[0].content[${position}].image`,
    })),
  streamError: (error) => sseData(JSON.stringify(openaiErrorObject(error))),
}

function isStreamWanted(body: unknown): boolean {
  return (body as { readonly stream?: unknown }).stream === true
}

function textOf({ input, parameters }: MultimodalImageRequest): readonly string[] {
  return [...input.messages[0].content.map(({ text }) => text ?? ''), parameters?.negative_prompt ?? '']
}
