import { createHash } from 'node:crypto'
import { isJsonObject, objectOf, objectsIn } from '../../core/json.ts'
import type { ChatRequest, EncryptedReasoning, ExtraContent } from '../../endpoints/chat/chat-request.ts'
import type { VendorCall } from '../vendor.ts'
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
    const delta: Record<string, unknown> = objectOf(choice['delta'])
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
  return objectsIn(value)
}

/** An answer that begins with more blanks is text: each chunk of them would be looked through again. */
const MAX_BLANKS = 256

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
      } else if (this.#open.startsWith(begun) && rest.length - begun.length <= MAX_BLANKS)
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

/** Reader of encrypted reasoning: the organization of a key, with the model that generated it (OpenAI, "Reasoning models"). */
type ReasoningReader = Pick<VendorCall<object>, 'apiKey'> & { readonly model: { readonly upstream: string } }

/** Returns reasoning in the form that chat callers carry, on the call or message that followed it. */
export function carriedReasoning(reasoning: EncryptedReasoning[], reader: ReasoningReader): ExtraContent {
  return { responses: { origin: originOf(reader), reasoning } }
}

/** Returns the reasoning that a caller carries. `isReadable` is false for reasoning of another key or model. */
export function readReasoning(
  extra: unknown,
  reader: ReasoningReader,
): { readonly reasoning: readonly EncryptedReasoning[]; readonly isReadable: boolean } | undefined {
  const state = isJsonObject(extra) ? extra['responses'] : undefined
  if (!isJsonObject(state) || !Array.isArray(state['reasoning'])) return undefined
  return { reasoning: state['reasoning'].filter(isReasoning), isReadable: state['origin'] === originOf(reader) }
}

/**
 * Whether a conversation carries reasoning that only this key can read. Such a request is sent there first.
 * @param call A chat request, or a conversation with its messages.
 */
export function ownsEncryptedReasoning(
  call: { readonly model: string; readonly messages?: unknown },
  apiKey: string,
): boolean {
  if (!Array.isArray(call.messages)) return false
  const key = `${keyMark(apiKey)}.`
  return call.messages.filter(isJsonObject).some((message) => {
    const { extra_content: extra, tool_calls: calls } = message
    const extras = Array.isArray(calls)
      ? [extra, ...calls.filter(isJsonObject).map((one) => one['extra_content'])]
      : [extra]
    return extras.some((one) => originIn(one)?.startsWith(key) === true)
  })
}

function originIn(extra: unknown): string | undefined {
  const state = isJsonObject(extra) ? extra['responses'] : undefined
  const origin = isJsonObject(state) ? state['origin'] : undefined
  return typeof origin === 'string' ? origin : undefined
}

function originOf({ apiKey, model }: ReasoningReader): string {
  return `${keyMark(apiKey)}.${markOf(`model ${model.upstream}`)}`
}

/** Hashes a key: marks are visible to callers, who must not learn a key or the vendor's id of a model. */
function keyMark(apiKey: string): string {
  return markOf(`key ${apiKey}`)
}

function markOf(text: string): string {
  return createHash('sha256').update(`reasoning ${text}`).digest('base64url').slice(0, 12)
}

function isReasoning(value: unknown): value is EncryptedReasoning {
  return isJsonObject(value) && typeof value['id'] === 'string' && typeof value['encrypted_content'] === 'string'
}

/**
 * Models that reason, including fine-tuned ones. Chat completions never show it (OpenAI, "Reasoning models",
 * https://developers.openai.com/api/docs/guides/reasoning). `gpt-5-chat-latest` does not reason.
 */
const REASONING_MODEL = /^(?:ft:)?(?:o\d|gpt-(?:[5-9]|[12]\d)(?!-chat))/
/**
 * Reasoning models that do not reason by default: from gpt-5.1 to 5.4 the default effort is `none`, before and after it is
 * `medium`, and of `-pro` models `high` (OpenAI, API reference, `reasoning_effort`; Azure, type `ReasoningEffort`, for gpt-5.1 and
 * before; https://www.zansara.dev/posts/2026-05-26-reasoning-effort-across-gpt-5.x/ for the change with gpt-5.5). The `-codex` and
 * `-chat` models of these versions were measured at `medium` (https://qiita.com/hanaya/items/51720cb429d543874abe), so they count
 * as reasoning.
 */
const DEFAULT_EFFORT_NONE = /^(?:ft:)?gpt-5\.[1-4](?:$|[:-](?!pro|codex|chat))/

/** Whether a model, by the vendor's own id, reasons invisibly for this request. */
export function hasHiddenReasoning(upstream: string, { reasoning_effort: effort }: ChatRequest): boolean {
  return effortUnseen(upstream, effort)
}

/** Whether a model reasons invisibly at the requested effort. */
export function effortUnseen(upstream: string, effort: string | null | undefined): boolean {
  if (effort !== undefined && effort !== null) return effort !== 'none'
  return REASONING_MODEL.test(upstream) && !DEFAULT_EFFORT_NONE.test(upstream)
}
