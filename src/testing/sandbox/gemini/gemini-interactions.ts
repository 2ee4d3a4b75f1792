import { createHash } from 'node:crypto'
import { withoutFaultMarks } from '../fault.ts'
import { countTokens } from '../model/chat-turn.ts'
import { asList, asObject, asText, checkFields, type Fields, inRange, isGiven, oneOf, rule } from '../request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  eventText,
  jsonReply,
  type Refuse,
  refusals,
  type SandboxCall,
  type SandboxReply,
  streamReply,
  type VendorErrors,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'
import { geminiImageModel, geminiPicture } from './gemini.ts'
import { GEMINI_ERRORS, GEMINI_HEADERS, thoughtSignature } from './gemini-request.ts'

/** Errors of the Interactions API: a string as code, without status and details. */
const OWN_ERRORS = vendorErrors(
  {
    400: ['Request contains an invalid argument.', 'invalid_request'],
    404: ['Requested entity was not found.', 'not_found'],
    429: ['Resource has been exhausted (e.g. check quota).', 'resource_exhausted'],
    500: ['An internal error has occurred. Please retry.', 'internal'],
    503: ['The model is overloaded. Please try again later.', 'unavailable'],
    504: ['Deadline expired before operation could complete.', 'deadline_exceeded'],
    '4xx': ['Unknown error.', 'unknown'],
    '5xx': ['Unknown error.', 'unknown'],
  },
  (status, message, [code]) => jsonReply(status, GEMINI_HEADERS, { error: { message, code } }),
  {
    quota: () => listed(GEMINI_ERRORS.quota()),
    badKey: () => listed(GEMINI_ERRORS.badKey()),
    streamEvent() {
      const error = { message: 'The model is overloaded. Please try again later.', code: 'unavailable' }
      return eventText({ error, event_type: 'error' }, 'error')
    },
  },
)

/** Errors of the API and of its front end, which uses Google's usual envelope, in a list, such as for a key. */
export const GEMINI_INTERACTIONS_ERRORS: VendorErrors = {
  ...OWN_ERRORS,
  status: (status, ...others) =>
    status === 401 || status === 403
      ? listed(GEMINI_ERRORS.status(status, ...others))
      : OWN_ERRORS.status(status, ...others),
}

function listed(reply: SandboxReply): SandboxReply {
  return { ...reply, pieces: [`[${reply.pieces.join('')}\n]\n`] }
}

const refuse: Refuse = refusals(GEMINI_INTERACTIONS_ERRORS)

const OLD_REVISION = '2026-05-07'
const OLD_LAYOUT =
  'The legacy Interactions schema is no longer supported. Please use the steps schema (Api-Revision 2026-05-20).'

/** Checks one request. Source: Google's reference of the Interactions API, and its guide to image generation. */
function checkInteraction(call: SandboxCall): void {
  const request = asObject(call.body)
  if (call.headers['api-revision'] === OLD_REVISION) refuse(OLD_LAYOUT)
  for (const name of ['outputs', 'response_mime_type']) if (isGiven(request[name])) refuse(OLD_LAYOUT)
  if (isGiven(request['agent'])) refuse("Only one of 'model' and 'agent' may be set.")
  const model = asText(request['model'])
  if (!/^(?:gemini|nano-banana)-/.test(model)) refuse(`Model '${model}' is not found or does not support interactions.`)
  checkInput(request['input'], model)
  if (isGiven(request['system_instruction']) && typeof request['system_instruction'] !== 'string')
    refuse("Invalid value at 'system_instruction': a string is expected.")
  for (const format of asFormats(request['response_format'])) checkFormat(format, model)
  checkConfig(asObject(request['generation_config']), model)
  checkHistory(request, call)
}

/** Returns the requested formats. The field may be one or a list. */
function asFormats(value: unknown): readonly Fields[] {
  if (!isGiven(value)) return []
  return (Array.isArray(value) ? value : [value]).map(asObject)
}

/** Returns the blocks of the input. A string is one block. */
function inputBlocks(input: unknown): readonly Fields[] {
  return typeof input === 'string' ? [{ type: 'text', text: input }] : asList(input).map(asObject)
}

function checkInput(input: unknown, model: string): void {
  const blocks = inputBlocks(input)
  if (blocks.length === 0 || input === '') refuse("The 'input' field is required.")
  const { maxReferences } = geminiImageModel(model)
  let pictures = 0
  blocks.forEach((block, index) => {
    const place = `input[${index}]`
    if (block['type'] === 'text') {
      if (typeof block['text'] !== 'string') refuse(`Invalid value at '${place}.text'.`)
    } else if (block['type'] === 'image') {
      pictures += 1
      checkPicture(block, place)
    } else if (block['type'] === 'user_input') checkInput(block['content'], model)
    else refuse(`Invalid value at '${place}.type': ${JSON.stringify(block['type'])}`)
  })
  if (pictures > maxReferences) refuse(`At most ${maxReferences} images are supported by this model.`)
}

function checkPicture(block: Fields, place: string): void {
  const data = block['data']
  if (!isGiven(data) && !isGiven(block['uri'])) refuse(`One of 'data' and 'uri' is required at '${place}'.`)
  if (isGiven(data) && !/^[A-Za-z0-9+/_-]+={0,2}$/.test(asText(data).slice(0, 4096)))
    refuse(`Invalid value at '${place}.data': Base64 decoding failed.`)
  if (isGiven(data) && !asText(block['mime_type']).startsWith('image/'))
    refuse(`Invalid value at '${place}.mime_type': ${JSON.stringify(block['mime_type'])}`)
}

function checkFormat(format: Fields, model: string): void {
  if (format['type'] === 'text') return
  const { sizes, ratios } = geminiImageModel(model)
  const wrong = (value: unknown, name: string): string =>
    `Invalid value at 'response_format.${name}': ${JSON.stringify(value)}`
  if (format['type'] !== 'image') refuse(wrong(format['type'], 'type'))
  const accepted = { mime_type: ['image/jpeg', 'image/png'], image_size: Object.keys(sizes), aspect_ratio: ratios }
  const rules = Object.entries(accepted).map(([name, values]) =>
    rule(name, oneOf(...values), (value) => wrong(value, name)),
  )
  checkFields(format, rules, (text) => refuse(text))
}

function checkConfig(config: Fields, model: string): void {
  const at = "Invalid value at 'generation_config"
  const levels = oneOf(...geminiImageModel(model).thinkingLevels)
  const rules = [
    rule('thinking_level', levels, (level) => `${at}.thinking_level': ${JSON.stringify(level)}`),
    rule('temperature', inRange(0, 2), `${at}.temperature': must be in the range [0.0, 2.0].`),
  ]
  checkFields(config, rules, (text) => refuse(text))
}

function checkHistory(request: Fields, call: SandboxCall): void {
  const isStored = request['store'] !== false
  if (request['background'] === true) refuse('Background execution is not supported by this model.')
  if (!isGiven(request['previous_interaction_id'])) return
  if (!isStored) refuse("'previous_interaction_id' cannot be used when 'store' is false.")
  if (!isOwnInteraction(asText(request['previous_interaction_id']), credentialOf(call)))
    refuse('previous_interaction_id not found', 404)
}

const CALL_BYTES = 12
const PROOF_BYTES = 12

/**
 * Returns the id of a stored interaction. It contains a proof of the credential that created it, so that the stand-in recognizes
 * its own ids and their owners without storing anything.
 * @param callId 24 hexadecimal digits.
 */
function interactionId(credential: string, callId: string): string {
  const call = Buffer.from(callId, 'hex')
  return `v1_${Buffer.concat([call, proofOf(credential, call)]).toString('base64url')}`
}

/** Whether this interaction was created and stored with this credential. */
function isOwnInteraction(id: string, credential: string): boolean {
  if (!id.startsWith('v1_')) return false
  const bytes = Buffer.from(id.slice('v1_'.length), 'base64url')
  if (bytes.length !== CALL_BYTES + PROOF_BYTES) return false
  return proofOf(credential, bytes.subarray(0, CALL_BYTES)).equals(bytes.subarray(CALL_BYTES))
}

function proofOf(credential: string, call: Uint8Array): Buffer {
  return createHash('sha256').update(credential).update('\0').update(call).digest().subarray(0, PROOF_BYTES)
}

/**
 * Gemini: `POST /v1beta/interactions` for images, whole or streamed. Interactions can be continued with the key that created them,
 * unless `store` was false.
 */
export const GEMINI_INTERACTIONS = vendorOperations({
  vendor: 'gemini',
  errors: GEMINI_INTERACTIONS_ERRORS,
  headers: GEMINI_HEADERS,
  access(call) {
    if (credentialOf(call) === '') refuse('The caller does not have permission', 403)
  },
})({
  operation: 'images',
  post: /^\/v1(?:beta)?\/interactions$/,
  prompt: promptText,
  answer(call, context, request) {
    checkInteraction(call)
    const answer = interactionAnswer(call, context)
    const { steps, model } = answer
    if (request['stream'] !== true)
      return jsonReply(200, GEMINI_HEADERS, {
        id: answer.id,
        ...lastMembers(answer),
        steps: steps.length === 0 ? undefined : steps,
      })
    // Streams have an empty id if JSON responses have none.
    const id = answer.id ?? ''
    const status = 'in_progress'
    const pieces = [
      event('interaction.created', { interaction: { id, status, object: 'interaction', model } }),
      event('interaction.status_update', { interaction_id: id, status }),
      ...steps.flatMap(stepEvents),
      event('interaction.completed', { interaction: { id, ...lastMembers(answer) } }),
      'data: [DONE]\n\n',
    ]
    const filler = event('step.delta', { index: 0, delta: { type: 'text', text: ' more' } })
    return streamReply(GEMINI_HEADERS, pieces, filler)
  },
})

/** Returns the members at the end of both forms of the answer. */
function lastMembers({ model, status, created, errors, usage }: InteractionAnswer): Fields {
  return {
    object: 'interaction',
    model,
    status,
    created,
    updated: created,
    service_tier: 'standard',
    errors,
    usage,
  }
}

function stepEvents(step: Fields, index: number): string[] {
  const { content, signature, type } = step
  const deltas = Array.isArray(content) ? (content as Fields[]) : [{ type: 'thought_signature', signature }]
  return [
    event('step.start', { index, step: { type } }),
    ...deltas.map((delta) => event('step.delta', { index, delta })),
    event('step.stop', { index }),
  ]
}

function event(type: string, payload: Fields): string {
  return eventText({ ...payload, event_type: type }, type)
}

const THOUGHT_TOKENS = 24
const CAPTION = 'Here is your picture.'

type InteractionAnswer = ReturnType<typeof interactionAnswer>

/** Answers a request that passed the checks. Members that the vendor omits are undefined. */
function interactionAnswer(call: SandboxCall, context: AnswerContext) {
  const request = asObject(call.body)
  const model = asText(request['model'])
  const created = `${new Date(context.nowMs).toISOString().slice(0, 19)}Z`
  const id = request['store'] === false ? undefined : interactionId(credentialOf(call), context.id)
  const input = inputTokens(request, model)
  if (context.blocked) {
    const errors = [{ code: 'content_blocked', message: 'The picture was blocked by the safety filter.' }]
    const usage = context.usage(usageOf(input, 0, 0, 0))
    return { id, model, status: 'failed', created, errors, steps: [], usage }
  }
  const formats = asFormats(request['response_format'])
  const format = formats.find(({ type }) => type === 'image')
  const hasText = formats.length === 0 || formats.some(({ type }) => type === 'text')
  const picture = geminiPicture({
    model,
    size: givenText(format?.['image_size']),
    ratio: givenText(format?.['aspect_ratio']),
    mimeType: givenText(format?.['mime_type']),
    seed: `${asText(request['previous_interaction_id'])}\n${withoutFaultMarks(promptText(request))}`,
  })
  const level = asObject(request['generation_config'])['thinking_level']
  const thinks = isGiven(level) || geminiImageModel(model).alwaysThinks
  const image = { type: 'image', mime_type: picture.mimeType, data: picture.base64 }
  const steps: Fields[] = [
    ...(thinks ? [{ type: 'thought', signature: thoughtSignature(context.id) }] : []),
    // Text and image are in separate steps.
    ...(hasText ? [{ type: 'model_output', content: [{ type: 'text', text: CAPTION }] }] : []),
    { type: 'model_output', content: [image] },
  ]
  const text = hasText ? countTokens([CAPTION]) : 0
  const usage = context.usage(usageOf(input, picture.tokens, text, thinks ? THOUGHT_TOKENS : 0))
  return { id, model, status: 'completed', created, errors: undefined, steps, usage }
}

/** Returns the text of the input. */
function promptText({ input }: Fields): string {
  return inputBlocks(input)
    .flatMap(({ type, text }) => (type === 'text' ? [asText(text)] : []))
    .join('\n')
}

function givenText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function inputTokens(request: Fields, model: string): { readonly text: number; readonly image: number } {
  const pictures = inputBlocks(request['input']).filter(({ type }) => type === 'image').length
  return {
    text: countTokens([promptText(request), asText(request['system_instruction'])]),
    image: pictures * geminiImageModel(model).tokensPerReference,
  }
}

/** The output excludes thoughts, and its text is not itemised. */
function usageOf(
  input: ReturnType<typeof inputTokens>,
  imageTokens: number,
  textTokens: number,
  thoughtTokens: number,
): Fields {
  const totalInput = input.text + input.image
  return {
    total_tokens: totalInput + imageTokens + textTokens + thoughtTokens,
    total_input_tokens: totalInput,
    input_tokens_by_modality: modalities(input),
    total_output_tokens: imageTokens + textTokens,
    output_tokens_by_modality: modalities({ image: imageTokens }),
    total_thought_tokens: thoughtTokens,
    total_cached_tokens: 0,
    total_tool_use_tokens: 0,
  }
}

function modalities(tokens: Readonly<Record<string, number>>): Fields[] {
  return Object.entries(tokens)
    .filter(([, count]) => count > 0)
    .map(([modality, count]) => ({ modality, tokens: count }))
}
