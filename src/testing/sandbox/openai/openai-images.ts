import { type ImageHeader, imageHeader } from '../../../wire/image-header.ts'
import { asObject, asText } from '../model/loose-json.ts'
import { checkBearer } from '../openai-dialect/bearer-check.ts'
import type { AnswerContext, SandboxOperation } from '../sandbox-operation.ts'
import { OPENAI_ERRORS } from './openai-errors.ts'
import { pictureAnswer } from './openai-images-answer.ts'
import { checkedOrder, refuse } from './openai-images-checks.ts'
import { type ReceivedEdit, type ReceivedFile, receivedEdit } from './openai-images-form.ts'

const MAX_IMAGES = 16

/** OpenAI: `POST /v1/images/generations`. GPT Image models only; the older ones edit alone here. */
export const OPENAI_IMAGES: SandboxOperation = {
  vendor: 'openai',
  operation: 'images',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/images/generations',
  promptText: (body) => asText(asObject(body)['prompt']),
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    const order = checkedOrder(asObject(call.body))
    checkModeration(context)
    return pictureAnswer(order, { call, context, eventPrefix: 'image_generation', givenPictures: 0 })
  },
}

/** OpenAI: `POST /v1/images/edits`, as a form or, for GPT Image models, as JSON. */
export const OPENAI_IMAGE_EDITS: SandboxOperation = {
  vendor: 'openai',
  operation: 'image-edits',
  errors: OPENAI_ERRORS,
  needsJson: false,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/images/edits',
  promptText: (body, call) => asText(receivedEdit(call, body).fields['prompt']),
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    const edit = receivedEdit(call, call.body)
    const order = checkedOrder(edit.fields)
    checkPictures(edit, order.isLegacy)
    checkModeration(context)
    const givenPictures = edit.images.length + (edit.mask === undefined ? 0 : 1)
    return pictureAnswer(order, { call, context, eventPrefix: 'image_edit', givenPictures })
  },
}

function checkModeration({ blocked }: AnswerContext): void {
  if (!blocked) return
  refuse('Your request was rejected by the safety system.', null, 'moderation_blocked')
}

function checkPictures({ images, mask, isForm }: ReceivedEdit, isLegacy: boolean): void {
  const field = isForm ? 'image' : 'images'
  if (images.length === 0) refuse(`Missing required parameter: '${field}'.`, field, 'missing_required_parameter')
  if (isLegacy && !isForm) refuse("Unknown parameter: 'images'.", 'images', 'unknown_parameter')
  if (images.length > (isLegacy ? 1 : MAX_IMAGES)) {
    refuse(`Invalid '${field}': array too long.`, field, 'array_above_max_length')
  }
  const [first] = images.map((image) => (image === undefined ? undefined : checkedHeader(image, field)))
  if (mask === undefined || mask === null) return
  const header = checkedHeader(mask, 'mask')
  if (header.format !== 'png') refuse('Invalid mask image format - mask must be a PNG file.', 'mask')
  if (first !== undefined && (header.width !== first.width || header.height !== first.height)) {
    refuse('Invalid mask image format - mask size does not match image size.', 'mask')
  }
}

function checkedHeader(file: ReceivedFile, field: string): ImageHeader {
  const header = imageHeader([file.bytes])
  if (header !== undefined) return header
  const formats = "Supported file formats are 'image/jpeg', 'image/png', and 'image/webp'."
  return refuse(`Invalid file '${field}': unsupported mimetype ('${file.contentType}'). ${formats}`, field)
}
