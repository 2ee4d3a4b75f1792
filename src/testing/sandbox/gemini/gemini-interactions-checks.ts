import { createHash } from 'node:crypto'
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
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxReply,
  type VendorErrors,
} from '../sandbox-operation.ts'
import { GEMINI_ERRORS, GEMINI_HEADERS } from './gemini-errors.ts'
import { geminiImageModel } from './gemini-pictures.ts'

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
export function checkInteractionKey(call: SandboxCall): void {
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
export function checkInteraction(call: SandboxCall): void {
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
export function asFormats(value: unknown): readonly Json[] {
  if (!isGiven(value)) return []
  return (Array.isArray(value) ? value : [value]).map(asObject)
}

/** Returns the blocks of the input. A string is one block. */
export function inputBlocks(input: unknown): readonly Json[] {
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
export function interactionId(credential: string, callId: string): string {
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
