import { Buffer } from 'node:buffer'
import { sseData } from '../../../wire/sse.ts'
import type { Endpoint } from '../../endpoint.ts'
import { openaiErrorObject } from '../../error-body.ts'
import { checkRequest } from '../../request-field.ts'
import {
  checkFreeSize,
  checkPictureOptions,
  type OpenAIImageRequest,
  pictureBillingFields,
  pictureEstimate,
} from './openai-image-request.ts'
import { pictureSchema } from './openai-image-schema.ts'

/** Text to image in OpenAI's shape, for `gp-image-2` (API specification, "Endpoints", note 1). */
export const openaiImageEndpoint: Endpoint<OpenAIImageRequest> = {
  id: 'images',
  path: '/v1/images/generations',
  kind: 'image',
  dialect: 'openai',
  isPaidJob: true,
  parse(body, { image }) {
    const request = checkRequest<OpenAIImageRequest>(pictureSchema, body)
    checkFreeSize(request.size, image)
    checkPictureOptions(request, image)
    return request
  },
  isStream: (request) => request.stream === true,
  textBytes: (request) => Buffer.byteLength(request.prompt),
  estimate: (request, textTokens, model) => pictureEstimate(request, { textTokens, pictures: 0 }, model),
  billingFields: pictureBillingFields,
  streamError: (error) => sseData(JSON.stringify(openaiErrorObject(error))),
}
