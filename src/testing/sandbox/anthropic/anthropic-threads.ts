import { asList, asObject, asText, isGiven } from '../request-fields.ts'
import { type AnswerContext, jsonReply, RefusedCall, type SandboxCall } from '../sandbox-operation.ts'
import { ANTHROPIC_HEADERS, refuseAnthropic } from './anthropic-request.ts'

type Json = Readonly<Record<string, unknown>>

/** A call whose body contains all turns of its thread, and a function that stores its answer. */
export interface ThreadedCall {
  readonly call: SandboxCall
  readonly context: AnswerContext
  /** Stores the conversation under the id of its answer. */
  keep(message: Json): void
}

/** The threads of one sandbox. */
export interface AnthropicThreads {
  /** @throws RefusedCall for a thread that is unknown, or was continued before. */
  enter(call: SandboxCall, context: AnswerContext): ThreadedCall
}

interface HeldThread {
  /** Members that a continuation gets from the thread and must not repeat. */
  readonly begun: Json
  readonly messages: readonly unknown[]
  wasContinued: boolean
}

const BETA = 'message-threads-2026-08-12'
const MAX_HELD = 1_000

/**
 * Stores conversations (Anthropic SDK, "Message threads"): `create` begins one, and `continue` names the answer to continue, once.
 * `system` and `tools` are those of the first call.
 */
export function anthropicThreads(): AnthropicThreads {
  const held = new Map<string, HeldThread>()
  let answers = 0
  return {
    enter(call, context) {
      const request = asObject(call.body)
      if (!isGiven(request['thread'])) return { call, context, keep: () => undefined }
      if (call.headers['anthropic-beta']?.includes(BETA) !== true)
        refuseAnthropic('thread: Extra inputs are not permitted')
      const { thread, ...rest } = request
      const body = wholeBody(asObject(thread), rest, held)
      // Equal calls begin separate threads.
      const unique = { ...context, id: `${context.id}${answers++}` }
      return {
        call: { ...call, body },
        context: unique,
        keep({ id, role, content }) {
          const { system, tools, messages } = body
          const turns = [...asList(messages), { role, content }]
          held.set(asText(id), { begun: { system, tools }, messages: turns, wasContinued: false })
          const [oldest] = held.keys()
          if (held.size > MAX_HELD && oldest !== undefined) held.delete(oldest)
        },
      }
    },
  }
}

function wholeBody(thread: Json, rest: Json, held: ReadonlyMap<string, HeldThread>): Json {
  if (thread['type'] === 'create') return rest
  if (thread['type'] !== 'continue') refuseAnthropic("thread: Input tag does not match 'create' or 'continue'")
  const found = held.get(asText(thread['previous_message_id']))
  if (found === undefined) refuseThread(404, 'not_found_error', 'thread_not_found')
  if (found.wasContinued) refuseThread(400, 'invalid_request_error', 'thread_already_continued')
  for (const field of ['system', 'tools'])
    if (isGiven(rest[field])) refuseAnthropic(`${field}: a thread keeps what it was created with`)
  found.wasContinued = true
  return { ...rest, ...found.begun, messages: [...found.messages, ...asList(rest['messages'])] }
}

function refuseThread(status: number, type: string, code: string): never {
  const error = { type, message: `The conversation cannot be continued (${code}).`, details: { error_code: code } }
  throw new RefusedCall(jsonReply(status, ANTHROPIC_HEADERS, { type: 'error', error, request_id: 'req_011sandbox' }))
}
