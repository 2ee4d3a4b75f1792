import { Buffer } from 'node:buffer'
import type { Tier } from '../../../stores/principal.ts'
import { type CallerUrl, defineEndpoint } from '../../endpoint.ts'
import { jsonSchemaOf } from '../../json-schema.ts'
import { passThrough } from '../../operation.ts'
import { checkRequest } from '../../request-field.ts'
import { requestTexts } from '../../request-texts.ts'
import type { KindOf } from '../../texts.ts'
import { interactionErrors, refuseOtherShape } from '../image-errors.ts'
import type { ImagesOffer } from '../image-operation.ts'
import { withoutNulls } from '../null-members.ts'
import {
  checkInteractionAbilities,
  estimateInteraction,
  type InteractionRequest,
  imageSize,
} from './interaction-request.ts'
import { interactionSchema } from './interaction-schema.ts'

const DAY_MS = 24 * 60 * 60_000

/** How long a stored interaction can be continued (API specification, "States and transitions"). */
export const INTERACTION_RETENTION_MS: Readonly<Record<Tier, number>> = { paid: 55 * DAY_MS, free: DAY_MS }

/** Images in the interactions shape (API specification, "Interactions-style image request"). */
export const interactionImageEndpoint = defineEndpoint<InteractionRequest, ImagesOffer>({
  id: 'images',
  path: '/v1/images/generations',
  kind: 'image',
  errors: interactionErrors,
  isPaidJob: true,
  parse(body, model) {
    refuseOtherShape(body, 'interactions')
    const request = checkRequest<InteractionRequest>(interactionSchema(), withoutNulls(interactionSchema(), body))
    checkInteractionAbilities(request, model)
    return request
  },
  requestSchema: () => jsonSchemaOf(interactionSchema(), 'input'),
  isStream: (request) => request.stream === true,
  // The model reads the stored history again. Images of the request are in the estimate.
  media: ({ previous_interaction_id: previous }) => (previous === undefined ? [] : [{ kind: 'conversation' }]),
  textBytes,
  estimate: estimateInteraction,
  priceFields(request, model) {
    const aspectRatio = request.response_format?.aspect_ratio
    return {
      image_size: imageSize(request, model),
      ...(aspectRatio === undefined ? {} : { aspect_ratio: aspectRatio }),
    }
  },
  priceFieldNames: ['image_size', 'aspect_ratio'],
  callerUrls,
  continuation: {
    of: (request) => ({ previousId: request.previous_interaction_id, isStored: request.store !== false }),
    param: 'previous_interaction_id',
    idPrefix: 'v1',
    retentionMs: INTERACTION_RETENTION_MS,
    store: ({ interactions }) => interactions,
  },
  texts: {
    request: (request) =>
      requestTexts(request, {
        kinds: { input: 'text', system_instruction: 'text' },
        kindOf,
        last: ['system_instruction', 'input'],
        roleOf: (member) => (member === 'system_instruction' ? 'system' : 'user'),
      }),
  },
  createOperation({ images }, call) {
    const operation = images?.interactions
    return operation && passThrough(operation.toWire(call), operation, call)
  },
})

const kindOf: KindOf = (name) => (name === 'text' ? 'text' : undefined)

/** Returns the bytes that the model reads as text: prompt, instruction, declarations of functions. */
function textBytes({ input, system_instruction, tools }: InteractionRequest): number {
  const prompts = typeof input === 'string' ? [input] : input.map((block) => (block.type === 'text' ? block.text : ''))
  const texts = [...prompts, system_instruction ?? '', tools === undefined ? '' : JSON.stringify(tools)]
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
}

function callerUrls({ input }: InteractionRequest): CallerUrl[] {
  if (typeof input === 'string') return []
  return input.flatMap((block, index) =>
    block.type === 'image' && block.uri !== undefined ? [{ url: block.uri, param: `input[${index}].uri` }] : [],
  )
}
