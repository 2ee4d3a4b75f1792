import { withoutFaultMarks } from '../fault.ts'
import { asList, asObject, asText, isGiven } from '../request-fields.ts'

/** A function that the model may call. */
export interface PromptTool {
  readonly name: string
  /** JSON Schema of its arguments. */
  readonly schema: Readonly<Record<string, unknown>>
}

/** The parts of a vendor's chat request that the stand-in's model reads. */
export interface ChatPrompt {
  /** All texts of the prompt, to count tokens: instructions, all turns, tool results. */
  readonly texts: readonly string[]
  /** Text of the latest turn in which the user wrote something. */
  readonly lastUserText: string
  /** Number of images in that turn. */
  readonly lastUserImages: number
  /** Tool results since the model's latest answer. Empty if the user wrote last. */
  readonly toolResults: readonly string[]
  readonly tools: readonly PromptTool[]
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string }
  readonly parallelToolCalls: boolean
  /** Set if the answer must be JSON, with its schema if there is one. */
  readonly json: { readonly schema: Readonly<Record<string, unknown>> | undefined } | undefined
  /** Whether the model thinks before it answers. */
  readonly reasoning: boolean
  /** Maximum generated words, including reasoning. */
  readonly maxTokens: number | undefined
  /** Maximum generated words without reasoning. If omitted, only `maxTokens` limits them. */
  readonly answerTokens?: number | undefined
  /** Maximum words of reasoning. If omitted, only `maxTokens` limits them. */
  readonly thinkingTokens?: number | undefined
  readonly stop: readonly string[]
  /** Start of the answer that the caller sent. The answer continues it. */
  readonly prefill: string
}

/** A call of a function. */
interface TurnToolCall {
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Tokens of a turn. `prompt` and `completion` are totals that include their parts. */
export interface TurnUsage {
  readonly prompt: number
  readonly cached: number
  readonly cacheWrite: number
  readonly completion: number
  readonly reasoning: number
}

/** The answer of the stand-in's model, without a vendor's format. */
export interface ChatTurn {
  /** Words of reasoning. Empty if the model does not think. */
  readonly reasoning: readonly string[]
  /** Words of the answer. Empty if functions are called. */
  readonly words: readonly string[]
  readonly toolCalls: readonly TurnToolCall[]
  readonly ending: 'stop' | 'length' | 'stop-sequence' | 'tool-calls' | 'blocked'
  /** Sequence that ended the answer, if any. */
  readonly stopSequence: string | undefined
  readonly usage: TurnUsage
}

// The rest of a long prompt is not echoed, so that megabytes of prompt do not become a million events.
const MAX_ECHOED_WORDS = 1000

/**
 * Answers a prompt with the script of a test, or else deterministically: echoes the last user text, calls the functions it names
 * (`call <name>`), quotes their results, or writes JSON that fits the schema. One word counts as one token.
 */
export function chatTurn(
  prompt: ChatPrompt,
  { blocked, script = {} }: { readonly blocked: boolean; readonly script?: ScriptedTurn | undefined },
): ChatTurn {
  const answer = blocked
    ? turn(prompt, { ending: 'blocked' })
    : hasContent(script)
      ? scriptedTurn(prompt, script)
      : echoingTurn(prompt)
  return { ...answer, usage: reportedUsage(answer.usage, script) }
}

/** The limits of the request do not cut a script. */
function scriptedTurn(prompt: ChatPrompt, { text = '', chunks, toolCalls = [], ...script }: ScriptedTurn): ChatTurn {
  const calls = toolCalls.map(({ name, arguments: given = {} }) => ({ name, arguments: given }))
  const isCalling = script.finishReason === 'tool_calls' || (script.finishReason === undefined && calls.length > 0)
  return turn(prompt, {
    reasoning: words(script.reasoning ?? ''),
    words: chunks ?? words(text),
    toolCalls: calls,
    ending: isCalling ? 'tool-calls' : script.finishReason === 'length' ? 'length' : 'stop',
  })
}

function reportedUsage(usage: TurnUsage, { usage: script = {} }: ScriptedTurn): TurnUsage {
  return {
    prompt: script.inputTokens ?? usage.prompt,
    cached: script.cachedInputTokens ?? usage.cached,
    cacheWrite: script.cacheWriteTokens ?? usage.cacheWrite,
    completion: script.outputTokens ?? usage.completion,
    reasoning: script.reasoningTokens ?? usage.reasoning,
  }
}

function echoingTurn(prompt: ChatPrompt): ChatTurn {
  const said = withoutFaultMarks(prompt.lastUserText)
  const thoughts = prompt.reasoning ? words(`Let me think about this: ${words(said).slice(0, 8).join('').trim()}`) : []
  const limit = prompt.maxTokens ?? Number.POSITIVE_INFINITY
  const reasoning = thoughts.slice(0, Math.min(limit, prompt.thinkingTokens ?? limit))
  const toolCalls = prompt.toolResults.length > 0 ? [] : toolCallsFor(prompt, said)
  if (toolCalls.length > 0) return turn(prompt, { reasoning, toolCalls, ending: 'tool-calls' })

  const { text, stopSequence } = cutAtStop(answerText(prompt, said), prompt.stop)
  const answer = words(text)
  const kept = answer.slice(0, Math.min(limit - reasoning.length, prompt.answerTokens ?? limit))
  if (kept.length < answer.length) return turn(prompt, { reasoning, words: kept, ending: 'length' })
  return turn(prompt, {
    reasoning,
    words: kept,
    ending: stopSequence === undefined ? 'stop' : 'stop-sequence',
    stopSequence,
  })
}

function turn(prompt: ChatPrompt, parts: Partial<ChatTurn> & Pick<ChatTurn, 'ending'>): ChatTurn {
  const { reasoning = [], words = [], toolCalls = [], ending, stopSequence } = parts
  const promptTokens = countTokens(prompt.texts)
  const callTokens = toolCalls.map((call) => countTokens([call.name, JSON.stringify(call.arguments)]))
  const usage: TurnUsage = {
    prompt: promptTokens,
    cached: mentions(prompt, 'cached') ? Math.floor(promptTokens / 2) : 0,
    cacheWrite: mentions(prompt, 'cache-write') ? Math.floor(promptTokens / 4) : 0,
    completion: reasoning.length + words.length + callTokens.reduce((sum, tokens) => sum + tokens, 0),
    reasoning: reasoning.length,
  }
  return { reasoning, words, toolCalls, ending, stopSequence, usage }
}

function mentions(prompt: ChatPrompt, word: string): boolean {
  return prompt.texts.some((text) => text.includes(word))
}

function answerText(prompt: ChatPrompt, said: string): string {
  if (prompt.json !== undefined) {
    const { schema } = prompt.json
    return JSON.stringify(schema === undefined ? { answer: `You said: ${said}` } : sampleValue(schema))
  }
  if (prompt.toolResults.length > 0) return `The tools answered: ${prompt.toolResults.join(' | ')}`
  const pictures = prompt.lastUserImages === 0 ? '' : ` (pictures: ${prompt.lastUserImages})`
  const echo = words(said).slice(0, MAX_ECHOED_WORDS).join('')
  return `${prompt.prefill === '' ? '' : ' '}You said: ${echo}${pictures}`
}

function cutAtStop(text: string, stop: readonly string[]): { text: string; stopSequence: string | undefined } {
  let end = text.length
  let stopSequence: string | undefined
  for (const sequence of stop) {
    const position = sequence === '' ? -1 : text.indexOf(sequence)
    if (position !== -1 && position < end) {
      end = position
      stopSequence = sequence
    }
  }
  return { text: text.slice(0, end), stopSequence }
}

function toolCallsFor(prompt: ChatPrompt, said: string): TurnToolCall[] {
  const { toolChoice, tools } = prompt
  if (toolChoice === 'none') return []
  if (typeof toolChoice === 'object')
    return tools.filter((tool) => tool.name === toolChoice.name).map((tool) => callOf(tool))
  const mentioned = mentionedTools(tools, said)
  const wanted = mentioned.length === 0 && toolChoice === 'required' ? tools.slice(0, 1) : mentioned
  return (prompt.parallelToolCalls ? wanted : wanted.slice(0, 1)).map((tool) => callOf(tool))
}

/** Returns the tools that a text names, in its order, including repetitions. Empty unless a name follows the word `call`. */
function mentionedTools(tools: readonly PromptTool[], said: string): PromptTool[] {
  const found = tools.flatMap((tool) => {
    const name = tool.name.replace(/[^\w]/g, '\\$&')
    return [...said.matchAll(new RegExp(`(call\\s+\`?)?(?<![\\w-])${name}(?![\\w-])`, 'gi'))].map((match) => ({
      tool,
      position: match.index,
      asked: match[1] !== undefined,
    }))
  })
  if (!found.some((mention) => mention.asked)) return []
  return found.sort((left, right) => left.position - right.position).map((mention) => mention.tool)
}

function callOf(tool: PromptTool): TurnToolCall {
  const sample = sampleValue({ type: 'object', ...tool.schema })
  return { name: tool.name, arguments: sample as Record<string, unknown> }
}

/** Longest word, in code points. Longer text (a data URL, Chinese text) counts as several words. */
const WORD = /\s*\S{1,24}|\s+$/gu

/** Splits a text into words, each with the white space before it. Joined, they are the text again. */
export function words(text: string): string[] {
  return text.match(WORD) ?? []
}

/** Counts the tokens of texts like the stand-ins: a quarter of the UTF-8 bytes, rounded up, at least 1. */
export function countTokens(texts: readonly string[]): number {
  let bytes = 0
  for (const text of texts) bytes += Buffer.byteLength(text)
  return Math.max(1, Math.ceil(bytes / 4))
}

type Schema = Readonly<Record<string, unknown>>

// Recursive schemas end here; optional members are left out anyway, so real ones never get this deep.
const MAX_DEPTH = 12

const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-01-15',
  'date-time': '2026-01-15T09:30:00Z',
  time: '09:30:00Z',
  email: 'reader@example.com',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000001',
}

/**
 * A value that fits a JSON Schema (or Google's OpenAPI subset, upper-case types included), always the same one. Objects
 * get their required members only; `name` is the member the value is for and shows in texts.
 */
export function sampleValue(schema: Schema, name = 'value', root: Schema = schema, depth = 0): unknown {
  if (depth > MAX_DEPTH) return null
  const target = asText(schema['$ref'])
  if (target !== '') return sampleValue(resolve(target, root), name, root, depth + 1)
  if ('const' in schema) return schema['const']
  const [choice] = asList(schema['enum'])
  if (choice !== undefined) return choice
  if (isGiven(schema['default'])) return schema['default']
  const [alternative] = [...asList(schema['anyOf']), ...asList(schema['oneOf'])]
  if (alternative !== undefined) return sampleValue(asObject(alternative), name, root, depth + 1)
  const parts = asList(schema['allOf'])
  if (parts.length > 0) return sampleValue(merge(schema, parts), name, root, depth + 1)
  switch (typeOf(schema)) {
    case 'object':
      return sampleObject(schema, root, depth)
    case 'array': {
      const count = Math.max(1, limit(schema, 'minItems') ?? 1)
      return Array.from({ length: count }, () => sampleValue(asObject(schema['items']), name, root, depth + 1))
    }
    case 'integer':
      return sampleNumber(schema, 1)
    case 'number':
      return sampleNumber(schema, 1.5)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return sampleText(schema, name)
  }
}

function sampleObject(schema: Schema, root: Schema, depth: number): Record<string, unknown> {
  const properties = asObject(schema['properties'])
  const members = asList(schema['required']).map((name) => asText(name))
  return Object.fromEntries(
    members.map((name) => [name, sampleValue(asObject(properties[name]), name, root, depth + 1)]),
  )
}

function sampleNumber(schema: Schema, usual: number): number {
  const least = limit(schema, 'minimum') ?? (limit(schema, 'exclusiveMinimum') ?? Number.NEGATIVE_INFINITY) + 1
  const most = limit(schema, 'maximum') ?? (limit(schema, 'exclusiveMaximum') ?? Number.POSITIVE_INFINITY) - 1
  return Math.min(Math.max(usual, least), Math.max(most, least))
}

function sampleText(schema: Schema, name: string): string {
  const text = FORMATS[asText(schema['format'])] ?? `sample ${name}`
  return text.padEnd(limit(schema, 'minLength') ?? 0, '.').slice(0, limit(schema, 'maxLength'))
}

// Google writes lengths as strings ("5"), JSON Schema as numbers.
function limit(schema: Schema, keyword: string): number | undefined {
  const value = schema[keyword]
  return value === undefined || Number.isNaN(Number(value)) ? undefined : Number(value)
}

function typeOf(schema: Schema): string {
  const type = schema['type']
  const first = Array.isArray(type) ? type.find((entry) => entry !== 'null') : type
  if (first === undefined && 'properties' in schema) return 'object'
  return asText(first).toLowerCase()
}

function merge(schema: Schema, parts: readonly unknown[]): Schema {
  const { allOf: _, ...own } = schema
  const all = [own, ...parts.map(asObject)]
  return {
    ...Object.assign({}, ...all),
    properties: Object.assign({}, ...all.map((part) => asObject(part['properties']))),
    required: [...new Set(all.flatMap((part) => asList(part['required'])))],
  }
}

function resolve(pointer: string, root: Schema): Schema {
  let place: unknown = root
  for (const step of pointer.replace(/^#\/?/, '').split('/')) {
    if (step !== '') place = asObject(place)[decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')]
  }
  return asObject(place)
}

/** A function that a scripted reply calls. */
export interface ScriptedToolCall {
  readonly name: string
  /** Arguments of the call. Default: none. */
  readonly arguments?: Readonly<Record<string, unknown>>
}

/** Tokens that a scripted reply reports. Omitted counts are computed as for any other answer. */
export interface ScriptedUsage {
  /** Input tokens, including tokens read from or written to a cache. */
  readonly inputTokens?: number
  readonly cachedInputTokens?: number
  readonly cacheWriteTokens?: number
  /** Output tokens, including reasoning. */
  readonly outputTokens?: number
  readonly reasoningTokens?: number
}

/** Output of the model, without a vendor's format: each stand-in writes it as its vendor would. */
export interface ScriptedTurn {
  /** Text of the answer, streamed word by word. */
  readonly text?: string
  /** Text in the chunks of a stream, in place of `text`. */
  readonly chunks?: readonly string[]
  /** Functions that the model calls, after the text if there is one. */
  readonly toolCalls?: readonly ScriptedToolCall[]
  /** Reasoning of the model before its answer. */
  readonly reasoning?: string
  /**
   * Why the answer ends. Default `tool_calls` with calls, else `stop`. With `content_filter`, the vendor's filter blocks the
   * answer, in this vendor's form.
   */
  readonly finishReason?: 'stop' | 'length' | 'tool_calls' | 'content_filter'
  readonly usage?: ScriptedUsage
  /** Scores of categories in a moderation answer, 0 to 1. Scores from 0.5 on are flagged. Others are as usual. */
  readonly scores?: Readonly<Record<string, number>>
}

/** Whether a script sets the model's answer, rather than only its report. */
export function hasContent({ text, chunks, toolCalls, reasoning, finishReason }: ScriptedTurn): boolean {
  return [text, chunks, toolCalls, reasoning, finishReason].some((member) => member !== undefined)
}
