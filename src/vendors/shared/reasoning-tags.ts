import { isJsonObject } from '../../core/json.ts'
import type { AnswerRepair } from './openai-chat-dialect.ts'

/** Moves `<tag>…</tag>` at the start of the content of answers to `reasoning_content`. @param tag Name, such as `think`. */
export function reasoningTags(tag: string): AnswerRepair {
  return {
    whole: (completion) => splitWhole(completion, tag),
    chunks() {
      const splitters = new Map<number, ReasoningTagSplitter>()
      return (chunk) => splitChunk(chunk, splitters, tag)
    },
  }
}

function splitWhole(completion: Record<string, unknown>, tag: string): boolean {
  let changed = false
  for (const choice of objectsOf(completion['choices'])) {
    const { message } = choice
    if (!isJsonObject(message) || typeof message['content'] !== 'string') continue
    const { content } = message
    const splitter = new ReasoningTagSplitter(tag)
    const parts = [splitter.push(content), splitter.end()]
    const text = parts.map((part) => part.text).join('')
    const reasoning = parts.map((part) => part.reasoning).join('')
    if (text === content && reasoning === '') continue
    message['content'] = text
    if (reasoning !== '') message['reasoning_content'] ??= reasoning
    changed = true
  }
  return changed
}

function splitChunk(
  chunk: Record<string, unknown>,
  splitters: Map<number, ReasoningTagSplitter>,
  tag: string,
): boolean {
  let changed = false
  for (const choice of objectsOf(chunk['choices'])) {
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0
    const splitter = splitters.get(index) ?? new ReasoningTagSplitter(tag)
    splitters.set(index, splitter)
    const delta: Record<string, unknown> = isJsonObject(choice['delta']) ? choice['delta'] : {}
    const content = typeof delta['content'] === 'string' ? delta['content'] : ''
    const isLast = typeof choice['finish_reason'] === 'string' && choice['finish_reason'] !== ''
    const pushed = splitter.push(content)
    const rest = isLast ? splitter.end() : { text: '', reasoning: '' }
    const text = pushed.text + rest.text
    const reasoning = pushed.reasoning + rest.reasoning
    if (text === content && reasoning === '') continue
    delta['content'] = text === '' ? null : text
    if (reasoning !== '') delta['reasoning_content'] = reasoning
    choice['delta'] = delta
    changed = true
  }
  return changed
}

function objectsOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

/** An answer that begins with more blanks is text: each chunk of them would be looked through again. */
const MOST_BLANKS = 256

/** A split chunk of an answer. */
interface SplitText {
  readonly text: string
  readonly reasoning: string
}

/**
 * Removes `<tag>…</tag>` at the start of an answer from its text, however the text is split into chunks, and once more directly
 * after it: some servers put each chunk of reasoning between tags. Tags anywhere else belong to the answer.
 */
class ReasoningTagSplitter {
  readonly #open: string
  readonly #close: string
  #state: 'start' | 'reasoning' | 'gap' | 'text' = 'start'
  #held = ''

  constructor(tag: string) {
    this.#open = `<${tag}>`
    this.#close = `</${tag}>`
  }

  push(chunk: string): SplitText {
    let rest = this.#held + chunk
    let reasoning = ''
    this.#held = ''
    while (this.#state !== 'text') {
      if (this.#state === 'reasoning') {
        const end = rest.indexOf(this.#close)
        if (end === -1) {
          const kept = longestStart(rest, this.#close)
          return this.#hold(rest.slice(rest.length - kept), reasoning + rest.slice(0, rest.length - kept))
        }
        reasoning += rest.slice(0, end)
        rest = rest.slice(end + this.#close.length)
        this.#state = 'gap'
      }
      const begun = rest.trimStart()
      // Blanks between reasoning and answer belong to neither.
      if (this.#state === 'gap') rest = begun
      if (begun.startsWith(this.#open)) {
        this.#state = 'reasoning'
        rest = begun.slice(this.#open.length)
      } else if (this.#open.startsWith(begun) && rest.length - begun.length <= MOST_BLANKS)
        return this.#hold(rest, reasoning)
      else this.#state = 'text'
    }
    return { text: rest, reasoning }
  }

  /** Called at the end of the answer. Returns the held text. */
  end(): SplitText {
    const held = this.#held
    this.#held = ''
    return this.#state === 'reasoning' ? { text: '', reasoning: held } : { text: held, reasoning: '' }
  }

  #hold(held: string, reasoning: string): SplitText {
    this.#held = held
    return { text: '', reasoning }
  }
}

/** Length of the longest end of `text` with which `tag` may begin. */
function longestStart(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length--)
    if (tag.startsWith(text.slice(text.length - length))) return length
  return 0
}
