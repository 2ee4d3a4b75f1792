import type { ToolResultBlock, ToolResultContent, UserBlock } from './messages-blocks.ts'

/** A tool call of an assistant turn, which the next user turn must answer. */
export interface OpenCall {
  /** The id in the caller's conversation. */
  readonly callId: string
  /** The id on the wire. */
  readonly toolUseId: string
}

/** The calls of one assistant turn together with the results that were given for them. */
export class CallAnswers {
  readonly #calls: readonly OpenCall[]
  readonly #results = new Map<OpenCall, ToolResultBlock>()

  constructor(calls: readonly OpenCall[]) {
    this.#calls = calls
  }

  /**
   * Takes the result of a call; false when no such call is open. A further result for an answered call is added to the
   * first, because the API takes one result a call.
   */
  add(callId: string, content: ToolResultContent[]): boolean {
    const matching = this.#calls.filter((call) => call.callId === callId)
    const call = matching.find((candidate) => !this.#results.has(candidate)) ?? matching.at(-1)
    if (call === undefined) return false
    const merged = [...(this.#results.get(call)?.content ?? []), ...content]
    this.#results.set(call, {
      type: 'tool_result',
      tool_use_id: call.toolUseId,
      ...(merged.length === 0 ? {} : { content: merged }),
    })
    return true
  }

  /** One result for each call, in the order of the calls. A call nobody answered gets a result that says so. */
  blocks(): ToolResultBlock[] {
    return this.#calls.map(
      (call) =>
        this.#results.get(call) ?? {
          type: 'tool_result',
          tool_use_id: call.toolUseId,
          content: [{ type: 'text', text: 'No result was given for this tool call.' }],
          is_error: true,
        },
    )
  }
}

/** A result without its call, as ordinary content of the user turn: the API refuses it in any other form. */
export function orphanResult(callId: string, content: ToolResultContent[]): UserBlock[] {
  return [{ type: 'text', text: `Result of tool call ${callId === '' ? '(no id)' : callId}:` }, ...content]
}
