import { createHash } from 'node:crypto'
import { withoutFaultMarks } from '../fault.ts'
import { countTokens } from '../model/chat-turn.ts'
import {
  asList,
  asObject,
  asText,
  checkFields,
  type FieldRule,
  inRange,
  isGiven,
  oneOf,
  rule,
} from '../request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
  type VendorErrors,
} from '../sandbox-operation.ts'
import { thoughtSignature } from './gemini-contents.ts'
import { GEMINI_ERRORS, GEMINI_HEADERS } from './gemini-errors.ts'
import { geminiImageModel, geminiPicture } from './gemini-pictures.ts'

const USUAL: ReadonlyMap<number, readonly [code: string, message: string]> = new Map([
  [400, ['invalid_request', 'Request contains an invalid argument.']],
  [404, ['not_found', 'Requested entity was not found.']],
  [429, ['resource_exhausted', 'Resource has been exhausted (e.g. check quota).']],
  [500, ['internal', 'An internal error has occurred. Please retry.']],
  [503, ['unavailable', 'The model is overloaded. Please try again later.']],
  [504, ['deadline_exceeded', 'Deadline expired before operation could complete.']],
])

/**
 * Errors of the Interactions API: a string as code, without status and details. Errors of its front end, such as for a key, use
 * Google's usual envelope, in a list.
 */
export const GEMINI_INTERACTIONS_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    if (status === 401 || status === 403) return listed(GEMINI_ERRORS.status(status, message, retryAfterSeconds))
    const [code, text] = USUAL.get(status) ?? ['unknown', 'Unknown error.']
    return interactionError(status, code, message ?? text, retryAfterSeconds)
  },
  quota: () => listed(GEMINI_ERRORS.quota()),
  badKey: () => listed(GEMINI_ERRORS.badKey()),
  streamEvent() {
    const error = { message: 'The model is overloaded. Please try again later.', code: 'unavailable' }
    return `event: error\ndata: ${JSON.stringify({ error, event_type: 'error' })}\n\n`
  },
}

/** Rejects a request with 400 `invalid_request`, unless another status is given. */
export function refuseInteraction(message: string, status = 400): never {
  throw new RefusedCall(GEMINI_INTERACTIONS_ERRORS.status(status, message))
}

/** Rejects a call without a key. Any key is accepted. */
function checkInteractionKey(call: SandboxCall): void {
  if (credentialOf(call) === '') throw new RefusedCall(GEMINI_INTERACTIONS_ERRORS.status(403))
}

function interactionError(status: number, code: string, message: string, retryAfterSeconds?: number): SandboxReply {
  // The error contains no details about the wait, unlike those of the older API.
  const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
  return jsonReply(status, [...GEMINI_HEADERS, ...wait], { error: { message, code } })
}

function listed(reply: SandboxReply): SandboxReply {
  return { ...reply, pieces: [`[${reply.pieces.join('')}\n]\n`] }
}

type Json = Readonly<Record<string, unknown>>

const OLD_REVISION = '2026-05-07'
const OLD_LAYOUT =
  'The legacy Interactions schema is no longer supported. Please use the steps schema (Api-Revision 2026-05-20).'

/** Checks one request. Source: Google's reference of the Interactions API, and its guide to image generation. */
function checkInteraction(call: SandboxCall): void {
  const request = asObject(call.body)
  if (call.headers['api-revision'] === OLD_REVISION) refuseInteraction(OLD_LAYOUT)
  for (const name of ['outputs', 'response_mime_type']) if (isGiven(request[name])) refuseInteraction(OLD_LAYOUT)
  if (isGiven(request['agent'])) refuseInteraction("Only one of 'model' and 'agent' may be set.")
  const model = asText(request['model'])
  if (!/^(?:gemini|nano-banana)-/.test(model))
    refuseInteraction(`Model '${model}' is not found or does not support interactions.`)
  checkInput(request['input'], model)
  if (isGiven(request['system_instruction']) && typeof request['system_instruction'] !== 'string') {
    refuseInteraction("Invalid value at 'system_instruction': a string is expected.")
  }
  asFormats(request['response_format']).forEach((format) => {
    checkFormat(format, model)
  })
  checkConfig(asObject(request['generation_config']), model)
  checkHistory(request, call)
}

/** Returns the requested formats. The field may be one or a list. */
function asFormats(value: unknown): readonly Json[] {
  if (!isGiven(value)) return []
  return (Array.isArray(value) ? value : [value]).map(asObject)
}

/** Returns the blocks of the input. A string is one block. */
function inputBlocks(input: unknown): readonly Json[] {
  return typeof input === 'string' ? [{ type: 'text', text: input }] : asList(input).map(asObject)
}

function checkInput(input: unknown, model: string): void {
  const blocks = inputBlocks(input)
  if (blocks.length === 0 || input === '') refuseInteraction("The 'input' field is required.")
  const { maxReferences } = geminiImageModel(model)
  let pictures = 0
  blocks.forEach((block, index) => {
    const place = `input[${index}]`
    if (block['type'] === 'text') {
      if (typeof block['text'] !== 'string') refuseInteraction(`Invalid value at '${place}.text'.`)
    } else if (block['type'] === 'image') {
      pictures += 1
      checkPicture(block, place)
    } else if (block['type'] === 'user_input') checkInput(block['content'], model)
    else refuseInteraction(`Invalid value at '${place}.type': ${JSON.stringify(block['type'])}`)
  })
  if (pictures > maxReferences) refuseInteraction(`At most ${maxReferences} images are supported by this model.`)
}

function checkPicture(block: Json, place: string): void {
  const data = block['data']
  if (!isGiven(data) && !isGiven(block['uri'])) refuseInteraction(`One of 'data' and 'uri' is required at '${place}'.`)
  if (isGiven(data) && !/^[A-Za-z0-9+/_-]+={0,2}$/.test(asText(data).slice(0, 4096))) {
    refuseInteraction(`Invalid value at '${place}.data': Base64 decoding failed.`)
  }
  if (isGiven(data) && !asText(block['mime_type']).startsWith('image/')) {
    refuseInteraction(`Invalid value at '${place}.mime_type': ${JSON.stringify(block['mime_type'])}`)
  }
}

function checkFormat(format: Json, model: string): void {
  if (format['type'] === 'text') return
  const { sizes, ratios } = geminiImageModel(model)
  const wrong = (value: unknown, name: string): string =>
    `Invalid value at 'response_format.${name}': ${JSON.stringify(value)}`
  if (format['type'] !== 'image') refuseInteraction(wrong(format['type'], 'type'))
  const rules: readonly FieldRule[] = [
    rule('mime_type', oneOf('image/jpeg', 'image/png'), (value) => wrong(value, 'mime_type')),
    rule('image_size', oneOf(...sizes.keys()), (value) => wrong(value, 'image_size')),
    rule('aspect_ratio', oneOf(...ratios), (value) => wrong(value, 'aspect_ratio')),
  ]
  checkFields(format, rules, (text) => refuseInteraction(text))
}

function checkConfig(config: Json, model: string): void {
  const at = "Invalid value at 'generation_config"
  const rules: readonly FieldRule[] = [
    rule(
      'thinking_level',
      oneOf(...geminiImageModel(model).thinkingLevels),
      (level) => `${at}.thinking_level': ${JSON.stringify(level)}`,
    ),
    rule('temperature', inRange(0, 2), `${at}.temperature': must be in the range [0.0, 2.0].`),
  ]
  checkFields(config, rules, (text) => refuseInteraction(text))
}

function checkHistory(request: Json, call: SandboxCall): void {
  const isStored = request['store'] !== false
  if (request['background'] === true) refuseInteraction('Background execution is not supported by this model.')
  if (!isGiven(request['previous_interaction_id'])) return
  if (!isStored) refuseInteraction("'previous_interaction_id' cannot be used when 'store' is false.")
  if (!isOwnInteraction(asText(request['previous_interaction_id']), credentialOf(call))) {
    refuseInteraction('previous_interaction_id not found', 404)
  }
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
export function isOwnInteraction(id: string, credential: string): boolean {
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
export const GEMINI_INTERACTIONS: SandboxOperation = {
  vendor: 'gemini',
  operation: 'images',
  errors: GEMINI_INTERACTIONS_ERRORS,
  matches: ({ method, path }) => method === 'POST' && /^\/v1(?:beta)?\/interactions$/.test(path),
  promptText,
  answer(call, context) {
    checkInteractionKey(call)
    checkInteraction(call)
    const answer = interactionAnswer(call, context)
    return asObject(call.body)['stream'] === true ? streamed(answer) : whole(answer)
  },
}

function whole(answer: InteractionAnswer): SandboxReply {
  const { id, steps } = answer
  return jsonReply(200, GEMINI_HEADERS, {
    ...(id === undefined ? {} : { id }),
    ...lastMembers(answer),
    ...(steps.length === 0 ? {} : { steps }),
  })
}

function streamed(answer: InteractionAnswer): SandboxReply {
  // Streams have an empty id if JSON responses have none.
  const id = answer.id ?? ''
  const begun = { id, status: 'in_progress', object: 'interaction', model: answer.model }
  const pieces = [
    event('interaction.created', { interaction: begun }),
    event('interaction.status_update', { interaction_id: id, status: 'in_progress' }),
    ...answer.steps.flatMap(stepEvents),
    event('interaction.completed', { interaction: { id, ...lastMembers(answer) } }),
    'data: [DONE]\n\n',
  ]
  return streamReply(GEMINI_HEADERS, pieces, event('step.delta', { index: 0, delta: { type: 'text', text: ' more' } }))
}

/** Returns the members at the end of both forms of the answer. */
function lastMembers({ model, status, created, errors, usage }: InteractionAnswer): Json {
  return {
    object: 'interaction',
    model,
    status,
    created,
    updated: created,
    service_tier: 'standard',
    ...(errors.length === 0 ? {} : { errors }),
    ...(usage === undefined ? {} : { usage }),
  }
}

function stepEvents(step: Json, index: number): string[] {
  const { content, signature, type } = step
  const deltas = Array.isArray(content) ? (content as Json[]) : [{ type: 'thought_signature', signature }]
  return [
    event('step.start', { index, step: { type } }),
    ...deltas.map((delta) => event('step.delta', { index, delta })),
    event('step.stop', { index }),
  ]
}

function event(type: string, payload: Json): string {
  return `event: ${type}\ndata: ${JSON.stringify({ ...payload, event_type: type })}\n\n`
}

/** An interaction with its output steps. `steps` and `usage` are absent if the vendor omits them. */
export interface InteractionAnswer {
  /** Absent if nothing is stored. */
  readonly id: string | undefined
  readonly model: string
  readonly status: 'completed' | 'failed'
  readonly created: string
  readonly errors: readonly Json[]
  readonly steps: readonly Json[]
  readonly usage: Json | undefined
}

const THOUGHT_TOKENS = 24
const CAPTION = 'Here is your picture.'

/** Answers a request that passed the checks, deterministically. */
export function interactionAnswer(call: SandboxCall, context: AnswerContext): InteractionAnswer {
  const request = asObject(call.body)
  const model = asText(request['model'])
  const created = `${new Date(context.nowMs).toISOString().slice(0, 19)}Z`
  const id = request['store'] === false ? undefined : interactionId(credentialOf(call), context.id)
  const input = inputTokens(request, model)
  if (context.blocked) {
    const errors = [{ code: 'content_blocked', message: 'The picture was blocked by the safety filter.' }]
    return { id, model, status: 'failed', created, errors, steps: [], usage: context.usage(usageOf(input, 0, 0, 0)) }
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
  const steps = [
    ...(thinks ? [{ type: 'thought', signature: thoughtSignature(context.id) }] : []),
    // Text and image are in separate steps.
    ...(hasText ? [{ type: 'model_output', content: [{ type: 'text', text: CAPTION }] }] : []),
    { type: 'model_output', content: [image] },
  ]
  const text = hasText ? countTokens([CAPTION]) : 0
  const usage = context.usage(usageOf(input, picture.tokens, text, thinks ? THOUGHT_TOKENS : 0))
  return { id, model, status: 'completed', created, errors: [], steps, usage }
}

/** Returns the text of the input. */
export function promptText(body: unknown): string {
  return inputBlocks(asObject(body)['input'])
    .flatMap(({ type, text }) => (type === 'text' ? [asText(text)] : []))
    .join('\n')
}

function givenText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

interface InputTokens {
  readonly text: number
  readonly image: number
}

function inputTokens(request: Json, model: string): InputTokens {
  const pictures = inputBlocks(request['input']).filter(({ type }) => type === 'image').length
  return {
    text: countTokens([promptText(request), asText(request['system_instruction'])]),
    image: pictures * geminiImageModel(model).tokensPerReference,
  }
}

/** The output excludes thoughts, and its text is not itemised. */
function usageOf(input: InputTokens, imageTokens: number, textTokens: number, thoughtTokens: number): Json {
  const totalInput = input.text + input.image
  return {
    total_tokens: totalInput + imageTokens + textTokens + thoughtTokens,
    total_input_tokens: totalInput,
    input_tokens_by_modality: modalities({ text: input.text, image: input.image }),
    total_output_tokens: imageTokens + textTokens,
    output_tokens_by_modality: modalities({ image: imageTokens }),
    total_thought_tokens: thoughtTokens,
    total_cached_tokens: 0,
    total_tool_use_tokens: 0,
  }
}

function modalities(tokens: Readonly<Record<string, number>>): Json[] {
  return Object.entries(tokens)
    .filter(([, count]) => count > 0)
    .map(([modality, count]) => ({ modality, tokens: count }))
}
