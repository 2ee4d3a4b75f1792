import { createHash } from 'node:crypto'
import { parseVendorJson } from '../../core/json.ts'
import { credentialIdOf } from '../../routing/vendor-key.ts'
import { type DeliveryStep, deliverySteps } from './delivery-steps.ts'
import { type Fault, type FaultKind, type FaultQueue, faultOf } from './fault.ts'
import { OPENAI_ERRORS } from './openai/openai-errors.ts'
import { asObject, asText } from './request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  type IncomingCall,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  type VendorErrors,
} from './sandbox-operation.ts'
import type { ReplyQueue, ScriptedReply } from './scripted-reply.ts'

/** The input of an operation's answer. */
export interface AnswerSources {
  readonly operations: readonly SandboxOperation[]
  readonly faults: FaultQueue
  readonly replies: ReplyQueue
  readonly eventDelayMs: number
  now(): number
}

/** A call, and how it will be answered. */
export interface AnsweredCall {
  readonly call: SandboxCall
  readonly steps: Iterator<DeliveryStep, void, undefined>
}

/** Finds the operation of a call and computes its answer. Pure except for the faults and replies that it takes from the queues. */
export function answeredCall(incoming: IncomingCall, sources: AnswerSources): AnsweredCall {
  const { call, reply, faults } = repliedCall(incoming, sources)
  return { call, steps: deliverySteps(reply, faults, sources.eventDelayMs) }
}

/** A request of a batch, and its answer as the vendor stores it. */
export interface BatchedAnswer {
  readonly call: SandboxCall
  readonly status: number
  /** Parsed JSON. */
  readonly body: unknown
}

/** Faults that leave no answer for the vendor to store. */
const LOST: ReadonlySet<FaultKind> = new Set([
  'refuse',
  'reset',
  'hang',
  'hang-body',
  'reset-mid-stream',
  'end-early',
  'half-json',
  'endless',
])

/**
 * Answers a request of a batch like a single call. If a fault would break the delivery, or makes the answer unreadable, the request
 * fails with 500.
 */
export function batchedAnswer(batchId: string, incoming: IncomingCall, sources: AnswerSources): BatchedAnswer {
  const { call, reply, faults, errors } = repliedCall(incoming, sources, batchId)
  const isKept = !reply.streamed && !faults.some(({ kind }) => LOST.has(kind))
  const body = isKept ? jsonOf(reply) : undefined
  if (body !== undefined) return { call, status: reply.status, body }
  const failed = errors.status(500)
  return { call, status: failed.status, body: jsonOf(failed) }
}

function jsonOf({ pieces }: SandboxReply): unknown {
  return parseVendorJson(Buffer.concat(pieces.map((piece) => Buffer.from(piece))).toString('utf8'))
}

interface RepliedCall {
  readonly call: SandboxCall
  readonly reply: SandboxReply
  readonly faults: readonly Fault[]
  readonly errors: VendorErrors
}

function repliedCall(incoming: IncomingCall, sources: AnswerSources, batchId?: string): RepliedCall {
  const json = Buffer.from(incoming.bytes).toString('utf8')
  const body = json === '' ? undefined : parseVendorJson(json)
  const operation = sources.operations.find((candidate) => candidate.matches({ ...incoming, body }))
  const { vendor, operation: name } = operation ?? { vendor: 'unknown', operation: 'unknown' }
  const call: SandboxCall = {
    ...incoming,
    body,
    vendor,
    operation: name,
    model: modelOf(incoming, body),
    credentialId: credentialIdFor(vendor, incoming),
    ...(batchId === undefined ? {} : { batchId }),
  }
  if (operation === undefined) return { call, reply: noSuchPath(incoming), faults: [], errors: OPENAI_ERRORS }
  const text = operation.promptText(body, incoming)
  const script = sources.replies.take(call, text)
  const faults = [
    ...sources.faults.take(vendor, name, text),
    ...(script?.afterMs === undefined ? [] : [{ kind: 'delay', delayMs: script.afterMs } as const]),
  ]
  const reply = damagedReply(
    replacedReply(faults, call, operation.errors) ??
      scriptedError(script, operation.errors) ??
      ownReply(operation, call, contextOf(call, { faults, script }, sources)),
    faults,
    operation.errors,
  )
  return { call, reply, faults, errors: operation.errors }
}

function ownReply(operation: SandboxOperation, call: SandboxCall, context: AnswerContext): SandboxReply {
  if (call.body === undefined && operation.needsJson !== false) {
    return operation.errors.status(400, 'We could not parse the JSON body of your request.')
  }
  try {
    return operation.answer(call, context)
  } catch (error) {
    if (error instanceof RefusedCall) return error.reply
    throw error
  }
}

/** Returns the vendor's rejection from the script of a test. */
function scriptedError(script: ScriptedReply | undefined, errors: VendorErrors): SandboxReply | undefined {
  if (script?.error === undefined) return undefined
  const { status, message, retryAfterSeconds } = script.error
  return errors.status(status, message, retryAfterSeconds)
}

function contextOf(
  call: SandboxCall,
  { faults, script }: { readonly faults: readonly Fault[]; readonly script: ScriptedReply | undefined },
  sources: AnswerSources,
): AnswerContext {
  const replacement = faultOf(faults, 'usage')
  const isLeftOut = faultOf(faults, 'no-usage') !== undefined
  return {
    nowMs: sources.now(),
    id: createHash('sha256').update(call.bytes).digest('hex').slice(0, 24),
    blocked: faultOf(faults, 'blocked') !== undefined || script?.finishReason === 'content_filter',
    script,
    usage: (report) => {
      if (isLeftOut) return undefined
      return replacement === undefined ? report : withNumbers(report, replacement.value)
    },
  }
}

/** The same object with another value in the place of every number. */
function withNumbers<Report extends object>(report: Report, value: unknown): Report {
  return JSON.parse(JSON.stringify(report), (_, member: unknown) =>
    typeof member === 'number' ? value : member,
  ) as Report
}

function noSuchPath(call: IncomingCall): SandboxReply {
  const message = `Invalid URL (${call.method} ${call.path})`
  return jsonReply(404, [], { error: { message, type: 'invalid_request_error', param: null, code: null } })
}

/** Returns the answer with which a fault replaces the vendor's own, if any. */
export function replacedReply(
  faults: readonly Fault[],
  call: SandboxCall,
  errors: VendorErrors,
): SandboxReply | undefined {
  for (const fault of faults) {
    switch (fault.kind) {
      case 'unreadable':
        return errors.status(400, `The stand-in cannot read the fault mark ${fault.mark}.`)
      case 'status':
        return errors.status(fault.status, undefined, fault.retryAfterSeconds)
      case 'quota':
        return errors.quota()
      case 'bad-key':
        return errors.badKey()
      case 'leak-key':
        return errors.status(401, `The key ${credentialOf(call)} is not valid (sent as Bearer ${credentialOf(call)}).`)
      case 'html':
        return page(fault.status)
      case 'redirect':
        return redirect(fault.location ?? 'https://elsewhere.example/')
    }
  }
  return undefined
}

/** The vendor's answer with a fault applied, before it is sent. */
export function damagedReply(reply: SandboxReply, faults: readonly Fault[], errors: VendorErrors): SandboxReply {
  if (reply.status !== 200) return reply
  if (faultOf(faults, 'empty') !== undefined) return { ...reply, pieces: [], streamed: false }
  if (faultOf(faults, 'garbage') !== undefined) {
    const noise = '\u0001\u0002}{ this is no JSON ][\u0000'
    return { ...reply, pieces: reply.streamed ? [`data: ${noise}\n\n`, `data: ${noise}\n\n`] : [noise] }
  }
  const errorEvent = faultOf(faults, 'error-event')
  if (errorEvent !== undefined) {
    if (!reply.streamed) return { ...reply, pieces: errors.status(500).pieces }
    return { ...reply, pieces: [...reply.pieces.slice(0, errorEvent.events ?? 1), errors.streamEvent()] }
  }
  if (faultOf(faults, 'no-done') !== undefined && reply.streamed) return { ...reply, pieces: reply.pieces.slice(0, -1) }
  return reply
}

function page(status: number): SandboxReply {
  const body = `<html>\r\n<head><title>${status}</title></head>\r\n<body><h1>${status}</h1><hr>proxy</body>\r\n</html>\r\n`
  return { status, headers: ['content-type', 'text/html'], pieces: [body], streamed: false }
}

function redirect(location: string): SandboxReply {
  return { status: 307, headers: ['location', location], pieces: [''], streamed: false }
}

const PATH_MODEL = /\/(?:models?|deployments|endpoints)\/([^/:]+)/
const FORM_MODEL = /name="model"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]*)\r\n/
const MAX_HEAD_BYTES = 64 * 1024

/** Returns the model that a call names in its body, form or path, in the vendor's terms, or `undefined` if it names none. */
function modelOf(call: IncomingCall, body: unknown): string | undefined {
  const named = asText(asObject(body)['model'])
  if (named !== '') return named
  const inPath = PATH_MODEL.exec(call.path)?.[1]
  if (inPath !== undefined) return decodedOrAsIs(inPath)
  if (!(call.headers['content-type'] ?? '').startsWith('multipart/form-data')) return undefined
  const inForm = FORM_MODEL.exec(Buffer.from(call.bytes.subarray(0, MAX_HEAD_BYTES)).toString('latin1'))?.[1]
  return inForm ?? FORM_MODEL.exec(Buffer.from(call.bytes).toString('latin1'))?.[1]
}

// Vendor ids of the gateway that differ from the stand-in's names.
const GATEWAY_IDS: Readonly<Record<string, string>> = { azure: 'azure-openai' }
const WITH_KEYS = new Set(['openai', 'anthropic', 'gemini', 'dashscope', 'voyage', 'cohere', 'azure', 'presets'])

/**
 * The id by which a gateway's events name the key of a call; undefined without a key, and for clouds, whose credentials are tokens and
 * signatures that change. For a vendor with an id of your own it differs.
 */
function credentialIdFor(vendor: string, call: IncomingCall): string | undefined {
  const key = credentialOf(call)
  if (key === '' || !WITH_KEYS.has(vendor)) return undefined
  const preset = /^\/presets\/([^/]+)\//.exec(call.path)?.[1]
  return credentialIdOf(preset ?? GATEWAY_IDS[vendor] ?? vendor, key)
}

function decodedOrAsIs(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
