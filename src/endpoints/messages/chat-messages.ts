import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatContentPart, ChatMessage } from '../chat/chat-request.ts'
import { assistantMessage } from './assistant-message.ts'
import type { ContentBlock, MessageParam, MessagesRequest } from './messages-request.ts'
import { toolResult } from './tool-result.ts'
import { blocksOf, type Report, textOf, userParts } from './user-content.ts'

/**
 * The system prompt and the turns of a request as chat messages. A user turn with results of tools becomes one tool message for
 * each result and, behind them, one user message with the rest: chat wants the results right behind their calls.
 * @throws GatewayError `invalid_request` for an unknown role, `unsupported_parameter` for content that cannot be passed on,
 *   each naming the place.
 */
export function chatMessages(request: MessagesRequest, report: Report): ChatMessage[] {
  // Other vendors read an assistant turn at the end as one that is over, and do not go on with it.
  if (request.messages.at(-1)?.role === 'assistant') report('messages.prefill')
  const system = systemText(request.system, report)
  const messages: ChatMessage[] = system === '' ? [] : [{ role: 'system', content: system }]
  // One by one, here and below: a call has no room for as many arguments as a body may hold blocks.
  request.messages.forEach((message, index) => {
    for (const one of turnMessages(message, `messages[${index}]`, report)) messages.push(one)
  })
  return messages
}

function turnMessages(message: MessageParam, path: string, report: Report): ChatMessage[] {
  if (isJsonObject(message['output_config'])) report('messages.output_config')
  const blocks = blocksOf(message.content)
  switch (message.role) {
    case 'user':
      return userMessages(blocks, `${path}.content`, report)
    case 'assistant': {
      const answer = assistantMessage(blocks, report)
      return answer === undefined ? [] : [answer]
    }
    case 'system': {
      const text = instructionText(blocks, report)
      return text === '' ? [] : [{ role: 'system', content: text }]
    }
    default:
      throw new GatewayError('invalid_request', {
        message: `${path}.role: must be user, assistant or system`,
        param: `${path}.role`,
      })
  }
}

function userMessages(blocks: readonly ContentBlock[], path: string, report: Report): ChatMessage[] {
  const results: ChatMessage[] = []
  const parts: ChatContentPart[] = []
  blocks.forEach((block, index) => {
    const blockPath = `${path}[${index}]`
    if (block.type !== 'tool_result') {
      for (const part of userParts(block, blockPath, report)) parts.push(part)
      return
    }
    const { message, rest } = toolResult(block, blockPath, report)
    results.push(message)
    for (const part of rest) parts.push(part)
  })
  if (parts.length === 0) return results
  const [only] = parts
  const content = parts.length === 1 && only?.type === 'text' ? only.text : parts
  return [...results, { role: 'user', content }]
}

/** Clients put a line about themselves first, which is no instruction; the dialect's own vendor takes it out by its place. */
const CLIENT_LINE = /^x-[a-z]+-billing-header:/

function systemText(system: MessagesRequest['system'], report: Report): string {
  const blocks = blocksOf(system)
  const first = blocks[0]?.['text']
  if (typeof first !== 'string' || !CLIENT_LINE.test(first)) return instructionText(blocks, report)
  report('system[0]')
  return instructionText(blocks.slice(1), report)
}

function instructionText(blocks: readonly ContentBlock[], report: Report): string {
  for (const block of blocks) {
    if (isJsonObject(block['cache_control'])) report('cache_control')
    if (block.type !== 'text') report(`messages.${block.type}`)
  }
  return textOf(blocks.filter((block) => block.type === 'text'))
}
