import type { ModelFacts } from '../../catalog/model-facts.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { baseModelId } from '../shared/aws-model-ids.ts'
import { reasonsUnseen } from '../shared/reasons-unseen.ts'

/** Dialects of the service for chats, as in the `protocol` of rows. */
export const SURFACES = ['openai', 'converse'] as const
type Surface = (typeof SURFACES)[number]

/** Models that are offered only or best in OpenAI's dialect. All others use Converse. A row's `protocol` takes precedence. */
const OPENAI_DIALECT = /^(?:openai|xai)\./

const OPENAI_MODEL = /^openai\./

/** Returns the dialect for requests to a model. */
export function surfaceOf({
  protocol,
  upstream,
}: Pick<ModelFacts, 'protocol'> & { readonly upstream: string }): Surface {
  if (protocol === 'openai' || protocol === 'converse') return protocol
  return OPENAI_DIALECT.test(baseModelId(upstream)) ? 'openai' : 'converse'
}

/** Whether a model of OpenAI has open weights. */
export function isOpenWeight(upstream: string): boolean {
  return baseModelId(upstream).startsWith('openai.gpt-oss')
}

export function isGrok(upstream: string): boolean {
  return baseModelId(upstream).startsWith('xai.')
}

/** Whether a model of OpenAI reasons without showing it for this request. Its open-weight models show their reasoning. */
export function openaiReasonsUnseen(upstream: string, request: ChatRequest): boolean {
  const base = baseModelId(upstream)
  return OPENAI_MODEL.test(base) && !isOpenWeight(upstream) && reasonsUnseen(base.replace(OPENAI_MODEL, ''), request)
}
