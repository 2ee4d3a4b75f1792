import { withoutFaultMarks } from '../fault.ts'
import { sampleValue } from './sample-value.ts'
import { hasContent, type ScriptedTurn } from './scripted-turn.ts'

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
export interface TurnToolCall {
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

/** Settings that decide an answer in addition to its prompt. */
export interface TurnContext {
  /** Whether the content filter blocks the answer. */
  readonly blocked: boolean
  readonly script?: ScriptedTurn | undefined
}

/**
 * Answers a prompt with the script of a test, or else deterministically: echoes the last user text, calls the functions it names
 * (`call <name>`), quotes their results, or writes JSON that fits the schema. One word counts as one token.
 */
export function chatTurn(prompt: ChatPrompt, { blocked, script = {} }: TurnContext): ChatTurn {
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
  if (typeof toolChoice === 'object') {
    return tools.filter((tool) => tool.name === toolChoice.name).map((tool) => callOf(tool))
  }
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
