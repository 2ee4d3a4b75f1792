import { Buffer } from 'node:buffer'
import { messagesCacheTime } from '../../endpoints/messages/messages-estimate.ts'
import type { ContentBlock, MessageParam, MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import type { ByteSpan } from '../../wire/json-cursor.ts'
import { ByteEdits } from '../../wire/json-edits.ts'
import { findMembers, lastItem } from '../../wire/json-spans.ts'
import type { VendorCall } from '../vendor.ts'
import { cachesPrompt, OWN_MARK } from './cache-control.ts'

/** Blocks that can carry a mark. The API rejects marks on thinking, and on text without a visible character. */
const MARKABLE: ReadonlySet<string> = new Set(['text', 'image', 'document', 'tool_use', 'tool_result', 'search_result'])

const CONTROL = JSON.stringify(OWN_MARK)
const MEMBER = Buffer.from(`,"cache_control":${CONTROL}`)
const TEXT_BEGINNING = Buffer.from('[{"type":"text","text":')
const TEXT_END = Buffer.from(`,"cache_control":${CONTROL}}]`)

/**
 * Marks a Messages request for caching if the call requests it and the caller has set no mark: at the last block of the system
 * prompt and at the last block of the last message.
 */
export class AutomaticMarks {
  readonly #system: boolean
  readonly #message: boolean

  private constructor(system: boolean, message: boolean) {
    this.#system = system
    this.#message = message
  }

  /** Returns `undefined` if nothing is to be marked. */
  static for(call: VendorCall<MessagesRequest>): AutomaticMarks | undefined {
    if (!cachesPrompt(call) || messagesCacheTime(call.request) !== 'none') return undefined
    const { system, messages } = call.request
    const marks = [takesMark(system), takesMark(messages.at(-1)?.content)] as const
    return marks.includes(true) ? new AutomaticMarks(...marks) : undefined
  }

  /** Adds the marks to the caller's bytes without other changes. Returns `undefined` if the places are uncertain. */
  inBytes(bytes: Buffer): Buffer | undefined {
    const { system, messages } = findMembers(bytes, ['system', 'messages'])
    const edits: (readonly [at: number, text: Buffer])[] = []
    if (this.#system) {
      if (system === undefined) return undefined
      edits.push(...marksAt(bytes, system))
    }
    if (this.#message) {
      const last = messages && lastItem(bytes, messages)
      const content = last && findMembers(bytes.subarray(last.start, last.end), ['content']).content
      if (last === undefined || content === undefined) return undefined
      edits.push(...marksAt(bytes, { start: last.start + content.start, end: last.start + content.end }))
    }
    const spliced = new ByteEdits()
    for (const [at, text] of edits.sort(([left], [right]) => left - right)) spliced.replace(at, at, text)
    return spliced.apply(bytes)
  }

  /** Adds the marks to a parsed request. */
  inRequest(request: MessagesRequest): MessagesRequest {
    const { system, messages } = request
    const last = messages.at(-1)
    return {
      ...request,
      ...(this.#system ? { system: markedContent(system) } : {}),
      ...(this.#message && last !== undefined
        ? { messages: [...messages.slice(0, -1), { ...last, content: markedContent(last.content) }] }
        : {}),
    }
  }
}

type Content = MessagesRequest['system'] | MessageParam['content'] | undefined

function takesMark(content: Content): boolean {
  if (typeof content === 'string') return content.trim() !== ''
  const block = content?.at(-1)
  if (block === undefined || !MARKABLE.has(block.type)) return false
  return block.type !== 'text' || (typeof block['text'] === 'string' && block['text'].trim() !== '')
}

function markedContent(content: Content): ContentBlock[] {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : [...(content ?? [])]
  const last = blocks.pop()
  return last === undefined ? [] : [...blocks, { ...last, cache_control: OWN_MARK }]
}

const QUOTE = 0x22
const CLOSE_BRACE = 0x7d

/** Returns the insertions that mark the end of a content: a string becomes a block, and a block gets a member. */
function marksAt(bytes: Buffer, { start, end }: ByteSpan): (readonly [at: number, text: Buffer])[] {
  if (bytes[start] === QUOTE)
    return [
      [start, TEXT_BEGINNING],
      [end, TEXT_END],
    ]
  const brace = bytes.lastIndexOf(CLOSE_BRACE, end - 1)
  return [[brace, MEMBER]]
}
