import { EFFORTS } from '../../catalog/vendor-models/vendor-model.ts'
import type { ChatRequest, ReasoningEffort } from './chat-request.ts'

/** Fields that some models reject, or reject while they reason. */
type SamplingField = 'temperature' | 'top_p' | 'stop'

/** Values that a model accepts in the fields that translations into chat write. */
export interface ChatAbilities {
  /** Accepted reasoning efforts. Empty if the model does not reason; `undefined` if they are not known. */
  readonly efforts: readonly string[] | undefined
  /** Returns the fields that the model rejects with an effort. If omitted, it rejects none. */
  rejectedFields?(effort: string | null | undefined): readonly SamplingField[]
}

const DEFAULTS: Readonly<Record<string, unknown>> = { temperature: 1, top_p: 1 }

/** Returns a translated request as its model accepts it, and the names of the fields that were changed or left out. */
export function fitRequest(
  request: ChatRequest,
  abilities: ChatAbilities | undefined,
): { readonly request: ChatRequest; readonly dropped: readonly string[] } {
  if (abilities === undefined) return { request, dropped: [] }
  const { reasoning_effort: asked, ...rest } = request
  const effort = acceptedEffort(asked, abilities.efforts)
  const isSame = effort === asked || (effort === undefined && asked === 'none')
  const dropped: string[] = isSame ? [] : ['reasoning_effort']
  const fitted: Record<string, unknown> = { ...rest, ...(effort === undefined ? {} : { reasoning_effort: effort }) }
  for (const field of abilities.rejectedFields?.(effort) ?? []) {
    const value = request[field]
    if (value === undefined || value === null) continue
    delete fitted[field]
    if (value !== DEFAULTS[field]) dropped.push(field)
  }
  return { request: fitted as unknown as ChatRequest, dropped }
}

/** Returns the nearest accepted effort, or the lower of two. A request for reasoning never becomes `none`. */
function acceptedEffort(
  asked: ChatRequest['reasoning_effort'],
  efforts: readonly string[] | undefined,
): ChatRequest['reasoning_effort'] | undefined {
  if (asked === undefined || asked === null || efforts === undefined || efforts.includes(asked)) return asked
  const rank = EFFORTS.indexOf(asked)
  const offered = EFFORTS.filter((effort) => effort !== 'none' && efforts.includes(effort))
  const distance = (effort: ReasoningEffort): number => Math.abs(EFFORTS.indexOf(effort) - rank)
  return rank === -1 ? offered[0] : offered.sort((one, other) => distance(one) - distance(other))[0]
}
