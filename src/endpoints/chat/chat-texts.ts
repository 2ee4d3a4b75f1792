import { isJsonObject } from '../../core/json.ts'
import { SSE_DONE, sseData } from '../../wire/sse.ts'
import {
  type AnswerObject,
  type EndpointTexts,
  kindsByName,
  type SaidFacts,
  type TextPart,
  type TextRole,
  type TextStep,
  type TextStreamReader,
  textsIn,
  withTurns,
} from '../texts.ts'
import { ChatChunkWriter } from './chat-chunk-writer.ts'
import { chatUsage } from './chat-completion.ts'
import type { ChatRequest } from './chat-request.ts'

const kindOf = kindsByName({
  text: ['content', 'text', 'refusal', 'description'],
  reasoning: ['reasoning_content', 'reasoning', 'thinking'],
  tool_arguments: ['arguments', 'input'],
  transcript: ['transcript'],
})

const ROLES: Readonly<Record<string, TextRole>> = { developer: 'system', function: 'tool' }

/** Where texts of the chat dialect are. */
export const chatTexts: EndpointTexts<ChatRequest> = {
  request(request) {
    const texts = request.messages.flatMap((message, index) =>
      textsIn(message, ['messages', index], { kindOf, index, role: ROLES[message.role] ?? (message.role as TextRole) }),
    )
    const { prediction, tools } = request
    if (prediction !== undefined)
      texts.push(...textsIn(prediction, ['prediction'], { kindOf, index: 0, role: 'assistant' }))
    for (const [index, tool] of (tools ?? []).entries())
      texts.push(
        ...textsIn(tool.function?.description, ['tools', index, 'function', 'description'], {
          kindOf,
          index,
          role: 'system',
        }),
      )
    return texts
  },
  jsonSchema({ response_format: format }) {
    if (format?.type !== 'json_schema') return undefined
    const { json_schema: named } = format as { readonly json_schema?: unknown }
    return isJsonObject(named) ? named['schema'] : undefined
  },
  continued: (body, answer, reply) =>
    body['n'] === undefined || body['n'] === null || body['n'] === 1 ? withTurns(body, answer, reply) : undefined,
  answer: {
    whole: (answer) => choicesOf(answer).flatMap((choice, at) => choiceTexts(choice, at)),
    replaced: withoutProbabilities,
    refusal: (answer, message) => ({
      ...answer,
      choices: choicesOf(answer).map((choice, index) => ({
        index: choice['index'] ?? index,
        message: { role: 'assistant', content: null, refusal: message },
        logprobs: null,
        finish_reason: 'content_filter',
      })),
    }),
    said: saidInChat,
    stream: () => new ChatTextReader(),
  },
}

function saidInChat(text: string, { request, model, nowMs, seed, isStream }: SaidFacts): AnswerObject | string {
  const id = `chatcmpl-${seed}`
  const created = Math.floor(nowMs / 1000)
  if (!isStream) {
    const message = { role: 'assistant', content: text, refusal: null }
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }]
    return { id, object: 'chat.completion', created, model, choices, usage: chatUsage({}) }
  }
  const writer = new ChatChunkWriter({ model, createdSeconds: created })
  writer.start(id)
  writer.text(text)
  writer.finish('stop')
  writer.done((request as ChatRequest).stream_options?.include_usage === true ? {} : undefined)
  return writer.take()
}

function choicesOf({ choices }: AnswerObject): AnswerObject[] {
  return Array.isArray(choices) ? choices.filter(isJsonObject) : []
}

function choiceTexts({ message }: AnswerObject, at: number): TextPart[] {
  return textsIn(message, ['choices', at, 'message'], { kindOf, index: at })
}

/** Probabilities name the tokens of a text. */
function withoutProbabilities(answer: AnswerObject): void {
  for (const choice of choicesOf(answer)) if (isJsonObject(choice['logprobs'])) choice['logprobs'] = null
}

/** OpenAI makes all events equally long by it. */
const PLAIN = { padding: ['obfuscation'] } as const

/** Members of a difference that carry no text, beside the role. */
const PLAIN_MEMBERS: ReadonlySet<string> = new Set(['role', 'content', 'refusal', 'reasoning_content', 'reasoning'])

class ChatTextReader implements TextStreamReader {
  readonly plain = PLAIN
  #last: AnswerObject = {}
  readonly #finished = new Set<number>()
  readonly #seen = new Set<number>()

  read(event: AnswerObject): TextStep {
    if (event['object'] !== undefined) this.#last = event
    const added: TextPart[] = []
    const ended: string[] = []
    const choices = choicesOf(event)
    let isBare = choices.length === 1 && !isJsonObject(event['usage'])
    for (const [position, choice] of choices.entries()) {
      const index = typeof choice['index'] === 'number' ? choice['index'] : position
      const { delta, finish_reason: finish } = choice
      const isFirst = !this.#seen.has(index)
      this.#seen.add(index)
      if (isJsonObject(delta)) {
        added.push(...deltaTexts(delta, position, index))
        if (isFirst || !isPlain(delta)) isBare = false
      }
      if (typeof finish !== 'string') continue
      ended.push(`choices[${index}].`)
      isBare = false
    }
    return { added, repeated: [], ended, isBare: isBare && added.length === 1 }
  }

  more(event: AnswerObject, { path }: TextPart, text: string): AnswerObject {
    const { usage: _usage, ...shared } = event
    const choice = choicesOf(event)[path[1] as number] ?? {}
    const delta = isJsonObject(choice['delta']) ? choice['delta'] : {}
    const [, , , member, position] = path as readonly [string, number, string, string, number?]
    const calls = delta[member]
    const call: unknown = member === 'tool_calls' && Array.isArray(calls) ? calls[position ?? 0] : undefined
    const more = isJsonObject(call)
      ? { tool_calls: [{ index: call['index'] ?? position, ...argumentsOf(call, text) }] }
      : { [member]: text }
    return { ...shared, choices: [{ index: choice['index'] ?? 0, delta: more, logprobs: null, finish_reason: null }] }
  }

  sent(event: AnswerObject): void {
    for (const { index, finish_reason: finish } of choicesOf(event))
      if (typeof index === 'number' && typeof finish === 'string') this.#finished.add(index)
  }

  replaced = withoutProbabilities

  refusal(message: string): string {
    const { id = 'chatcmpl-refused', created = 0, model = '' } = this.#last
    const seen = this.#seen.size === 0 ? [0] : [...this.#seen]
    const open = seen.filter((index) => !this.#finished.has(index))
    const choices = open.map((index) => ({
      index,
      delta: { refusal: message },
      logprobs: null,
      finish_reason: 'content_filter',
    }))
    if (choices.length === 0) return SSE_DONE
    return sseData(JSON.stringify({ id, object: 'chat.completion.chunk', created, model, choices })) + SSE_DONE
  }
}

/** Names and ids of tool calls come with their first arguments. */
function isPlain(delta: AnswerObject): boolean {
  const { tool_calls: calls } = delta
  for (const name in delta) {
    if (name !== 'tool_calls' && !PLAIN_MEMBERS.has(name) && delta[name] !== null) return false
  }
  if (!Array.isArray(calls)) return true
  return calls.every(
    (call) =>
      isJsonObject(call) && call['id'] === undefined && isJsonObject(call['function']) && !call['function']['name'],
  )
}

function argumentsOf(call: AnswerObject, text: string): AnswerObject {
  return call['custom'] === undefined ? { function: { arguments: text } } : { custom: { input: text } }
}

/** The ids are those of the whole answer: a choice and a tool call are named by their own numbers. */
function deltaTexts(delta: AnswerObject, position: number, index: number): TextPart[] {
  const path = ['choices', position, 'delta']
  const parts = textsIn(delta, path, { kindOf, index })
  return parts.map((part) => {
    const rest = part.path.slice(path.length)
    const calls = delta['tool_calls']
    const call: unknown = rest[0] === 'tool_calls' && Array.isArray(calls) ? calls[rest[1] as number] : undefined
    const number = isJsonObject(call) && typeof call['index'] === 'number' ? call['index'] : rest[1]
    const place = call === undefined ? rest : ['tool_calls', number as number, ...rest.slice(2)]
    const id = place.reduce<string>(
      (text, step) => (typeof step === 'number' ? `${text}[${step}]` : `${text}.${step}`),
      `choices[${index}].message`,
    )
    return { ...part, id }
  })
}
