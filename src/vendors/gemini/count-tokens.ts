import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { WorkBudget } from '../../core/work-budget.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { TokenCountOperation, VendorCall, WireRequest } from '../vendor.ts'
import { apiRequestHead, type GeminiApi, modelResource } from './api-request.ts'
import { conversationToWire } from './conversation-to-wire.ts'
import { modelAbilities } from './model-abilities.ts'
import { toolsToWire } from './tools-to-wire.ts'

/**
 * Counts a chat by `countTokens` (Gemini API, "Counting tokens"). The whole request is sent, because contents alone would
 * omit the system prompt and the functions.
 */
export function countTokens(api: GeminiApi): TokenCountOperation {
  return {
    toWire: (call) => countTokensToWire(call, api),
    fromWire({ body }) {
      const answer = parseVendorJson(new TextDecoder().decode(body))
      const total = isJsonObject(answer) ? answer['totalTokens'] : undefined
      return typeof total === 'number' && Number.isSafeInteger(total) && total >= 0 ? total : undefined
    },
  }
}

function countTokensToWire({ request, model, apiKey }: VendorCall<ChatRequest>, api: GeminiApi): WireRequest {
  const abilities = modelAbilities(model.upstream)
  const dropped = new Set<string>()
  const report = (field: string): void => void dropped.add(field)
  const { systemInstruction, contents } = conversationToWire(request.messages, abilities, report, api.hasCallIds)
  const counted = {
    ...(systemInstruction === undefined ? {} : { systemInstruction }),
    contents,
    ...toolsToWire(request, abilities, new WorkBudget(), report),
  }
  return {
    ...apiRequestHead({ basePath: api.basePath, model: model.upstream, method: 'countTokens', apiKey }),
    body: exactJsonText(
      api.wrapsCounts ? { generateContentRequest: { model: modelResource(model.upstream), ...counted } } : counted,
    ),
    dropped: [...dropped],
  }
}
