import { Buffer } from 'node:buffer'
import { defineEndpoint } from '../../endpoint.ts'
import { openaiErrors } from '../../error-dialect.ts'
import { jsonSchemaOf } from '../../json-schema.ts'
import { passThrough } from '../../operation.ts'
import { checkRequest } from '../../request-field.ts'
import { requestTexts } from '../../request-texts.ts'
import { refuseOtherShape } from '../image-errors.ts'
import type { ImagesOffer } from '../image-operation.ts'
import {
  checkFreeSize,
  checkPictureOptions,
  type OpenAIImageRequest,
  pictureBillingFields,
  pictureEstimate,
} from './openai-image-request.ts'
import { pictureSchema } from './openai-image-schema.ts'

/** Text to image in OpenAI's shape, for `gp-image-2` (API specification, "Endpoints", note 1). */
export const openaiImageEndpoint = defineEndpoint<OpenAIImageRequest, ImagesOffer>({
  id: 'images',
  path: '/v1/images/generations',
  kind: 'image',
  errors: openaiErrors,
  isPaidJob: true,
  parse(body, { image }) {
    refuseOtherShape(body, 'generations')
    const request = checkRequest<OpenAIImageRequest>(pictureSchema(), body)
    checkFreeSize(request.size, image)
    checkPictureOptions(request, image)
    return request
  },
  requestSchema: () => jsonSchemaOf(pictureSchema(), 'input'),
  isStream: (request) => request.stream === true,
  textBytes: (request) => Buffer.byteLength(request.prompt),
  estimate: (request, textTokens, model) => pictureEstimate(request, { textTokens, pictures: 0 }, model),
  priceFields: pictureBillingFields,
  priceFieldNames: ['size', 'quality'],
  texts: {
    request: (request) => requestTexts(request, { kinds: { prompt: 'text' }, last: ['prompt'], roleOf: () => 'user' }),
  },
  createOperation({ images }, call) {
    const operation = images?.generations
    return operation && passThrough(operation.toWire(call), operation, call)
  },
})
