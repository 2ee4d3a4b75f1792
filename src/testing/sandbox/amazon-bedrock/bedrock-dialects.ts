import { Buffer } from 'node:buffer'
import { ANTHROPIC_COUNT_TOKENS, anthropicMessages } from '../anthropic/anthropic-messages.ts'
import { chatTurn } from '../model/chat-turn.ts'
import { openaiInvalid } from '../openai/openai-errors.ts'
import { type ChatDialect, COMPATIBLE_DIALECT, chatAnswer } from '../openai-dialect/chat-answer.ts'
import { checkChatRequest, readChatPrompt, tokenLimit } from '../openai-dialect/chat-request.ts'
import { asObject, asText } from '../request-fields.ts'
import type { SandboxCall, SandboxOperation } from '../sandbox-operation.ts'
import { BEDROCK_PREFIX, checkAccess, checkModelId } from './bedrock-access.ts'
import { BEDROCK_ERRORS, BEDROCK_HEADERS } from './bedrock-errors.ts'

const DIALECT: ChatDialect = { ...COMPATIBLE_DIALECT, showsReasoning: false }

/** Amazon Bedrock in OpenAI's dialect, at the paths of both its services. */
export const BEDROCK_CHAT: SandboxOperation = {
  vendor: 'amazon-bedrock',
  operation: 'chat',
  errors: BEDROCK_ERRORS,
  matches: ({ method, path }) => method === 'POST' && /^\/bedrock(?:\/openai)?\/v1\/chat\/completions$/.test(path),
  promptText: (body) => readChatPrompt(body).lastUserText,
  answer(call, context) {
    checkAccess(call, context.nowMs)
    checkModelId(asText(asObject(call.body)['model']))
    checkChatRequest(call.body, openaiInvalid)
    const effort = asText(asObject(call.body)['reasoning_effort'])
    const prompt = { ...readChatPrompt(call.body), reasoning: effort !== '' && effort !== 'none' }
    const turn = chatTurn({ ...prompt, maxTokens: tokenLimit(call.body) }, context)
    return chatAnswer(call.body, turn, context, DIALECT, BEDROCK_HEADERS)
  },
}

/** Claude in Amazon Bedrock, by the Messages API: as at its own vendor, behind the service's access checks. */
export function bedrockMessages(): SandboxOperation {
  return messagesOperation(anthropicMessages(), 'messages')
}

/** The count of a Messages request's tokens there. */
export const BEDROCK_COUNT_TOKENS = messagesOperation(ANTHROPIC_COUNT_TOKENS, 'messages/count_tokens')

function messagesOperation(own: SandboxOperation, path: string): SandboxOperation {
  return {
    ...own,
    vendor: 'amazon-bedrock',
    matches: (call) => call.method === 'POST' && call.path === `${BEDROCK_PREFIX}/anthropic/v1/${path}`,
    answer(call, context) {
      checkAccess(call, context.nowMs)
      checkModelId(asText(asObject(call.body)['model']))
      return own.answer(asAtTheVendor(call), context)
    },
  }
}

/** Returns the call for the stand-in of the vendor itself: access was checked, and its own id decides what the model accepts. */
function asAtTheVendor(call: SandboxCall): SandboxCall {
  const body = asObject(call.body)
  const model = asText(body['model']).replace(/^.*\banthropic\.|-v\d+(?::\d+)?$/g, '')
  const renamed = { ...body, model }
  const headers = { ...call.headers, 'x-api-key': 'checked-before' }
  return { ...call, headers, body: renamed, bytes: Buffer.from(JSON.stringify(renamed)) }
}
