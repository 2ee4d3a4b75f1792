import { isNearRetirement, retirementOf } from '../catalog/model-retirement.ts'
import type { Parsed } from './call-record.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'

const DAY_MS = 24 * 60 * 60_000

/** Maximum number of events per day. A pattern matches any number of ids, which callers choose. */
const MAX_EVENTS_PER_DAY = 1_000

/** Announces requested models that retire soon: to callers by a header, to the operator by one event per model and UTC day. */
export class RetirementNotices {
  readonly #models = new Set<string>()
  #day = 0

  /** Returns the header as name and value, or `undefined` if the model does not retire soon. */
  headerFor(context: PipelineContext, [requested]: Parsed['chain']): readonly [string, string] | undefined {
    const { id: model, vendor } = requested!
    const retires = retirementOf(requested!, context.catalog.source)
    const nowMs = context.clock.now()
    if (retires === undefined || !isNearRetirement(retires, nowMs)) return undefined
    const day = Math.floor(nowMs / DAY_MS)
    if (day !== this.#day) this.#models.clear()
    this.#day = day
    if (!this.#models.has(model) && this.#models.size < MAX_EVENTS_PER_DAY) {
      this.#models.add(model)
      context.logger.warn('a requested model retires soon', { model, vendor, retires })
      emit(context, { type: 'model-retiring', model, vendor, retires })
    }
    return ['x-signalbox-model-retires', retires]
  }
}
