import type { CatalogModel } from '../catalog/model.ts'
import type { Vendor } from '../vendors/vendor.ts'

/** A model as `GET /v1/models` lists it: the members that OpenAI's and those that Anthropic's clients read, in one object. */
export interface ListedModel {
  readonly id: string
  readonly object: 'model'
  /** Unix seconds. */
  readonly created: number
  readonly owned_by: string
  readonly type: 'model'
  readonly display_name: string
  /** The same moment as `created`, as RFC 3339. */
  readonly created_at: string
  readonly max_input_tokens?: number
  readonly max_tokens?: number
  /** What the model does. */
  readonly kinds: readonly string[]
  /** False: its vendor is not configured here. */
  readonly available: boolean
}

/** The answer of `GET /v1/models`. */
export interface ModelList {
  readonly object: 'list'
  readonly data: readonly ListedModel[]
  readonly has_more: false
  readonly first_id: string | null
  readonly last_id: string | null
}

/** Lists one model. */
export function listedModel(model: CatalogModel, vendors: ReadonlyMap<string, Vendor>): ListedModel {
  const { contextTokens, maxOutputTokens } = model.limits
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    owned_by: model.vendor,
    type: 'model',
    display_name: model.displayName,
    created_at: new Date(model.created * 1000).toISOString(),
    ...(contextTokens === undefined ? {} : { max_input_tokens: contextTokens }),
    ...(maxOutputTokens === undefined ? {} : { max_tokens: maxOutputTokens }),
    kinds: model.kinds,
    available: (vendors.get(model.vendor)?.apiKeys.length ?? 0) > 0,
  }
}

/** Lists all models; there is no paging, as with OpenAI, and Anthropic's paging members say so. */
export function modelList(models: readonly CatalogModel[], vendors: ReadonlyMap<string, Vendor>): ModelList {
  const data = models.map((model) => listedModel(model, vendors))
  return { object: 'list', data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
}
