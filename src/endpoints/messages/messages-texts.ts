import { isJsonObject } from '../../core/json.ts'
import { sseEvent } from '../../wire/sse.ts'
import { fieldPath } from '../request-field.ts'
import { type RequestPlaces, requestTexts } from '../request-texts.ts'
import {
  type AnswerObject,
  type EndpointTexts,
  type KindOf,
  kindsByName,
  NO_TEXT,
  type SaidFacts,
  type TextKind,
  type TextPart,
  type TextRole,
  type TextStep,
  type TextStreamReader,
  textsIn,
  withTurns,
} from '../texts.ts'
import { messageId, messageUsage } from './message-from-completion.ts'
import type { MessagesRequest } from './messages-request.ts'
import { MessagesStreamWriter } from './messages-stream-writer.ts'

const kindByName = kindsByName({
  text: ['content', 'text', 'title', 'context', 'description', 'cited_text', 'stdout', 'stderr'],
  reasoning: ['thinking'],
  tool_arguments: ['input', 'partial_json'],
})

/** Only `data` of a plain-text document is text. Other `data` is a file. */
const kindOf: KindOf = (name, owner) =>
  name === 'data' ? (owner['type'] === 'text' ? 'text' : undefined) : kindByName(name, owner)

const PLACES: RequestPlaces = {
  kinds: { system: 'text' },
  kindOf,
  last: ['tools', 'system', 'messages'],
  roleOf(member, entry) {
    if (member === 'tools' || member === 'system') return 'system'
    return member === 'messages' && isJsonObject(entry) ? (entry['role'] as TextRole) : undefined
  },
}

/** Where texts of the Messages dialect are. */
export const messagesTexts: EndpointTexts<MessagesRequest> = {
  request: (request) => requestTexts(request, PLACES),
  jsonSchema({ output_config: output }) {
    const format = output?.['format']
    return isJsonObject(format) && format['type'] === 'json_schema' ? format['schema'] : undefined
  },
  continued: withTurns,
  answer: {
    whole: ({ content }) =>
      Array.isArray(content) ? content.flatMap((block, at) => blockTexts(block, ['content', at], at)) : [],
    refusal: (answer, message) => ({
      ...answer,
      content: [{ type: 'text', text: message }],
      stop_reason: 'refusal',
      stop_sequence: null,
    }),
    said: saidInMessage,
    stream: () => new MessagesTextReader(),
  },
}

function saidInMessage(text: string, { model, nowMs, seed, isStream }: SaidFacts): AnswerObject | string {
  const facts = { model, nowMs, showsThinking: false }
  if (!isStream)
    return {
      id: messageId(seed, nowMs),
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: messageUsage({}),
    }
  const writer = new MessagesStreamWriter(facts)
  writer.start(seed)
  writer.text(text)
  writer.done({})
  return writer.take({})
}

function blockTexts(block: unknown, path: readonly (string | number)[], index: number): TextPart[] {
  return textsIn(block, path, { kindOf, index })
}

/** Member that continues a block, its place and its kind, by the type of the delta. */
const DELTAS: Readonly<Record<string, readonly [member: string, place: string, kind: TextKind]>> = {
  text_delta: ['text', 'text', 'text'],
  thinking_delta: ['thinking', 'thinking', 'reasoning'],
  input_json_delta: ['partial_json', 'input', 'tool_arguments'],
}

const PLAIN = { padding: [] } as const

class MessagesTextReader implements TextStreamReader {
  readonly plain = PLAIN
  #start: AnswerObject | undefined
  #hasBegun = false
  #open: number | undefined
  #next = 0
  #outputTokens = 0
  #citations = 0

  read(event: AnswerObject): TextStep {
    const index = typeof event['index'] === 'number' ? event['index'] : 0
    switch (event['type']) {
      case 'message_start':
        this.#start = event
        return NO_TEXT
      case 'content_block_start':
        return started(event['content_block'], index)
      case 'content_block_delta':
        return this.#delta(event['delta'], index)
      case 'content_block_stop':
        return { ...NO_TEXT, ended: [`content[${index}].`] }
      case 'message_delta': {
        const { usage } = event
        if (isJsonObject(usage) && typeof usage['output_tokens'] === 'number')
          this.#outputTokens = usage['output_tokens']
        return { ...NO_TEXT, ended: [''] }
      }
      case 'message_stop':
        return { ...NO_TEXT, ended: [''] }
      default:
        return NO_TEXT
    }
  }

  #delta(delta: unknown, index: number): TextStep {
    if (!isJsonObject(delta)) return NO_TEXT
    const known = DELTAS[String(delta['type'])]
    if (known !== undefined) {
      const [member, place, kind] = known
      const text = delta[member]
      if (typeof text !== 'string' || text === '') return NO_TEXT
      const part = { id: `content[${index}].${place}`, kind, index, text, path: ['delta', member] }
      return { added: [part], repeated: [], ended: [], isBare: true }
    }
    // A signature ends the reasoning before it. All other members arrive whole, such as a citation.
    const isSignature = delta['type'] === 'signature_delta'
    const number = this.#citations++
    const added = textsIn(delta, ['delta'], { kindOf, index }).map((part) => ({
      ...part,
      id: `content[${index}].deltas[${number}]${fieldPath(['', ...part.path.slice(1)])}`,
    }))
    return {
      added,
      repeated: [],
      ended: isSignature ? [`content[${index}].`] : added.map(({ id }) => id),
      isBare: false,
    }
  }

  more(event: AnswerObject, part: TextPart, text: string): AnswerObject {
    if (event['type'] === 'content_block_delta' && isJsonObject(event['delta']))
      return { ...event, delta: { ...event['delta'], [part.path[1]!]: text } }
    const delta = part.kind === 'reasoning' ? { type: 'thinking_delta', thinking: text } : { type: 'text_delta', text }
    return { type: 'content_block_delta', index: part.index, delta }
  }

  sent({ type, index }: AnswerObject): void {
    if (type === 'message_start') this.#hasBegun = true
    if (type === 'content_block_stop') this.#open = undefined
    if (type !== 'content_block_start' || typeof index !== 'number') return
    this.#open = index
    this.#next = index + 1
  }

  refusal(message: string): string {
    let text = ''
    if (!this.#hasBegun && this.#start !== undefined) text += event('message_start', this.#start)
    else if (!this.#hasBegun) {
      const start = { id: 'msg_refused', type: 'message', role: 'assistant', model: '', content: [], stop_reason: null }
      const usage = { input_tokens: 0, output_tokens: 0 }
      text += event('message_start', { message: { ...start, stop_sequence: null, usage } })
    }
    if (this.#open !== undefined) text += event('content_block_stop', { index: this.#open })
    const index = this.#next
    text += event('content_block_start', { index, content_block: { type: 'text', text: '' } })
    text += event('content_block_delta', { index, delta: { type: 'text_delta', text: message } })
    text += event('content_block_stop', { index })
    const delta = { stop_reason: 'refusal', stop_sequence: null }
    return (
      text + event('message_delta', { delta, usage: { output_tokens: this.#outputTokens } }) + event('message_stop', {})
    )
  }
}

/** Only text and reasoning continue after the start of their block. All other members arrive with it. */
function started(block: unknown, index: number): TextStep {
  const added = blockTexts(block, ['content_block'], index).map((part) => ({
    ...part,
    id: fieldPath(['content', index, ...part.path.slice(1)]),
  }))
  const whole = added.filter(({ path }) => path.length > 2 || (path[1] !== 'text' && path[1] !== 'thinking'))
  return { added, repeated: [], ended: whole.map(({ id }) => id), isBare: false }
}

function event(type: string, members: AnswerObject): string {
  return sseEvent(type, JSON.stringify({ type, ...members }))
}
