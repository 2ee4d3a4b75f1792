import { createHash } from 'node:crypto'
import { parseVendorJson } from '../../core/json.ts'
import { type DeliveryStep, deliverySteps } from './delivery/delivery-steps.ts'
import { type Fault, faultOf } from './faults/fault.ts'
import type { FaultQueue } from './faults/fault-queue.ts'
import { damagedReply, replacedReply } from './faults/replaced-reply.ts'
import type { IncomingCall, SandboxCall } from './sandbox-call.ts'
import {
  type AnswerContext,
  jsonReply,
  RefusedCall,
  type SandboxOperation,
  type SandboxReply,
} from './sandbox-operation.ts'

/** What the stand-ins answer from. */
export interface AnswerSources {
  readonly operations: readonly SandboxOperation[]
  readonly faults: FaultQueue
  readonly eventDelayMs: number
  now(): number
}

/** A call, and how it will be answered. */
export interface AnsweredCall {
  readonly call: SandboxCall
  readonly steps: Iterator<DeliveryStep, void, undefined>
}

/** Finds the operation of a call and works out its answer. Pure but for the faults that it takes from the queue. */
export function answeredCall(incoming: IncomingCall, sources: AnswerSources): AnsweredCall {
  const text = Buffer.from(incoming.bytes).toString('utf8')
  const body = text === '' ? undefined : parseVendorJson(text)
  const operation = sources.operations.find((candidate) => candidate.matches({ ...incoming, body }))
  if (operation === undefined) {
    const call = { ...incoming, body, vendor: 'unknown', operation: 'unknown' }
    return { call, steps: deliverySteps(noSuchPath(incoming), [], 0) }
  }
  const call: SandboxCall = { ...incoming, body, vendor: operation.vendor, operation: operation.operation }
  const faults = sources.faults.take(operation.vendor, operation.operation, operation.promptText(body, incoming))
  const reply = damagedReply(
    replacedReply(faults, call, operation.errors) ?? ownReply(operation, call, contextOf(call, faults, sources)),
    faults,
    operation.errors,
  )
  return { call, steps: deliverySteps(reply, faults, sources.eventDelayMs) }
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

function contextOf(call: SandboxCall, faults: readonly Fault[], sources: AnswerSources): AnswerContext {
  const replacement = faultOf(faults, 'usage')
  const isLeftOut = faultOf(faults, 'no-usage') !== undefined
  return {
    nowMs: sources.now(),
    id: createHash('sha256').update(call.bytes).digest('hex').slice(0, 24),
    blocked: faultOf(faults, 'blocked') !== undefined,
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
