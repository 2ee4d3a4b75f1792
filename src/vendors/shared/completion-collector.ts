import type { Usage } from '../../core/usage.ts'
import {
  type ChatAnnotation,
  type ChatAnswerMessage,
  type ChatCompletion,
  chatUsage,
  type FinishReason,
} from '../../endpoints/chat/chat-completion.ts'
import { messageTextBytes } from '../../endpoints/chat/chat-operation.ts'
import type { ChatRequest, ChatToolCall, ExtraContent, ThinkingBlock } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import type { VendorCall } from '../vendor.ts'

interface CollectedChoice {
  text: string
  refusal: string
  reasoning: string
  readonly thinkingBlocks: ThinkingBlock[]
  readonly toolCalls: ChatToolCall[]
  readonly annotations: ChatAnnotation[]
  readonly logprobs: unknown[]
  extraContent: ExtraContent | undefined
  finishReason: FinishReason | undefined
}

/** Collects the output of an answer reader into one chat completion. */
export class CompletionCollector implements ChatStreamWriter {
  #id = ''
  readonly #choices = new Map<number, CollectedChoice>()

  /** Returns the completion with its choices in order, or `undefined` if there are none, or one has neither an end nor content. */
  completion(call: VendorCall<ChatRequest>, usage: Usage | undefined): ChatCompletion | undefined {
    const choices: ChatCompletion['choices'] = []
    for (const [index, choice] of [...this.#choices].sort(([first], [second]) => first - second)) {
      const isEmpty = choice.text === '' && choice.toolCalls.length === 0
      if (choice.finishReason === undefined && isEmpty) return undefined
      // The body was complete, so a candidate without a finish reason counts as stopped.
      const reason = choice.finishReason ?? (choice.toolCalls.length > 0 ? 'tool_calls' : 'stop')
      choices.push({ index, message: messageOf(choice), logprobs: logprobsOf(choice), finish_reason: reason })
    }
    if (choices.length === 0) return undefined
    return {
      id: this.#id,
      object: 'chat.completion',
      created: Math.floor(call.nowMs / 1000),
      model: call.publicModel,
      choices,
      ...(usage === undefined ? {} : { usage: chatUsage(usage) }),
    }
  }

  /** Bytes of generated text so far. */
  get textBytes(): number {
    let byteLength = 0
    for (const choice of this.#choices.values()) byteLength += messageTextBytes(messageOf(choice))
    return byteLength
  }

  start(id: string): void {
    this.#id = id
  }

  text(text: string, choice = 0, logprobs: readonly unknown[] = []): void {
    const collected = this.#choice(choice)
    collected.text += text
    for (const one of logprobs) collected.logprobs.push(one)
  }

  annotations(annotations: readonly ChatAnnotation[], choice = 0): void {
    this.#choice(choice).annotations.push(...annotations)
  }

  refusal(text: string, choice = 0): void {
    this.#choice(choice).refusal += text
  }

  reasoning(text: string, choice = 0): void {
    this.#choice(choice).reasoning += text
  }

  thinkingBlock(block: ThinkingBlock, choice = 0): void {
    this.#choice(choice).thinkingBlocks.push(block)
  }

  extraContent(extra: ExtraContent, choice = 0): void {
    this.#choice(choice).extraContent = extra
  }

  toolCall({ index, id, name, extra, isCustom }: Parameters<ChatStreamWriter['toolCall']>[0], choice = 0): void {
    const called = isCustom === true ? { type: 'custom', custom: { name, input: '' } } : undefined
    this.#choice(choice).toolCalls[index] = {
      id,
      ...((called as object | undefined) ?? { type: 'function', function: { name, arguments: '' } }),
      ...(extra === undefined ? {} : { extra_content: extra }),
    } as ChatToolCall
  }

  toolCallArguments(index: number, json: string, choice = 0): void {
    const call = this.#choice(choice).toolCalls[index]
    const { custom } = (call ?? {}) as { custom?: { input: string } }
    if (custom !== undefined) custom.input += json
    else if (call !== undefined) call.function.arguments += json
  }

  finish(reason: FinishReason, choice = 0): void {
    this.#choice(choice).finishReason = reason
  }

  #choice(index: number): CollectedChoice {
    const known = this.#choices.get(index)
    if (known !== undefined) return known
    const choice: CollectedChoice = {
      text: '',
      refusal: '',
      reasoning: '',
      thinkingBlocks: [],
      toolCalls: [],
      annotations: [],
      logprobs: [],
      extraContent: undefined,
      finishReason: undefined,
    }
    this.#choices.set(index, choice)
    return choice
  }
}

function logprobsOf({ logprobs }: CollectedChoice): unknown {
  return logprobs.length === 0 ? null : { content: logprobs, refusal: null }
}

function messageOf(choice: CollectedChoice): ChatAnswerMessage {
  const { text, refusal, reasoning, thinkingBlocks, toolCalls, annotations, extraContent } = choice
  return {
    role: 'assistant',
    content: text === '' && toolCalls.length > 0 ? null : text,
    refusal: refusal === '' ? null : refusal,
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(thinkingBlocks.length === 0 ? {} : { thinking_blocks: thinkingBlocks }),
    ...(extraContent === undefined ? {} : { extra_content: extraContent }),
    ...(annotations.length === 0 ? {} : { annotations }),
  }
}
