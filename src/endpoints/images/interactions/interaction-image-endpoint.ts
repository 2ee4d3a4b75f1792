import { Buffer } from 'node:buffer'
import { sseEvent } from '../../../wire/sse.ts'
import type { CallerUrl, Endpoint } from '../../endpoint.ts'
import { openaiErrorObject } from '../../error-body.ts'
import { checkRequest } from '../../request-field.ts'
import {
  checkInteractionAbilities,
  estimateInteraction,
  type InteractionRequest,
  imageSize,
} from './interaction-request.ts'
import { interactionSchema } from './interaction-schema.ts'

/** Pictures in the interactions shape (API specification, "Interactions-style image request"). */
export const interactionImageEndpoint: Endpoint<InteractionRequest> = {
  id: 'images',
  path: '/v1/images/generations',
  kind: 'image',
  dialect: 'openai',
  isPaidJob: true,
  parse(body, model) {
    const request = checkRequest<InteractionRequest>(interactionSchema, body)
    checkInteractionAbilities(request, model)
    return request
  },
  isStream: (request) => request.stream === true,
  textBytes,
  estimate: estimateInteraction,
  billingFields(request, model) {
    const aspectRatio = request.response_format?.aspect_ratio
    return {
      image_size: imageSize(request, model),
      ...(aspectRatio === undefined ? {} : { aspect_ratio: aspectRatio }),
    }
  },
  callerUrls,
  conversation: (request) => ({
    previousId: request.previous_interaction_id,
    isStored: request.store !== false,
  }),
  streamError: (error) => sseEvent('error', JSON.stringify({ ...openaiErrorObject(error), event_type: 'error' })),
}

/** Bytes of everything that the model reads as text: prompt, instruction, declarations of functions. */
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
