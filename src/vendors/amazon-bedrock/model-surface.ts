import type { ModelFacts } from '../../catalog/model-facts.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { baseModelId } from '../shared/aws-model-ids.ts'
import { reasonsUnseen } from '../shared/reasons-unseen.ts'

/** Dialects in which the service accepts a chat, as the `protocol` of rows names them. */
export const SURFACES = ['openai', 'converse'] as const
type Surface = (typeof SURFACES)[number]

/** Models that are offered, or offered best, in OpenAI's dialect; all others by Converse. A row's `protocol` goes first. */
const OPENAI_DIALECT = /^(?:openai|xai)\./

const OPENAI_MODEL = /^openai\./

/** The dialect in which a model is asked. */
export function surfaceOf({
  protocol,
  upstream,
}: Pick<ModelFacts, 'protocol'> & { readonly upstream: string }): Surface {
  if (protocol === 'openai' || protocol === 'converse') return protocol
  return OPENAI_DIALECT.test(baseModelId(upstream)) ? 'openai' : 'converse'
}

/** Is it a model of OpenAI's with open weights? */
export function isOpenWeight(upstream: string): boolean {
  return baseModelId(upstream).startsWith('openai.gpt-oss')
}

export function isGrok(upstream: string): boolean {
  return baseModelId(upstream).startsWith('xai.')
}

/** Does a model of OpenAI's reason unseen for this request? Its open-weight models show their reasoning. */
export function openaiReasonsUnseen(upstream: string, request: ChatRequest): boolean {
  const base = baseModelId(upstream)
  return OPENAI_MODEL.test(base) && !isOpenWeight(upstream) && reasonsUnseen(base.replace(OPENAI_MODEL, ''), request)
}
