import type { ModelSource } from '../catalog/catalog.ts'
import type { CatalogModel } from '../catalog/model.ts'
import type { Modality, VendorModel } from '../catalog/vendor-models/vendor-model.ts'
import type { ModelKind } from '../core/model-kind.ts'

type KindModalities = Pick<VendorModel, 'inputModalities' | 'outputModalities'>

const flow = (inputModalities: readonly Modality[], output: Modality): KindModalities => {
  return { inputModalities, outputModalities: [output] }
}

/** Modalities that models of a kind read and write, if neither their row nor a catalog says it. */
const BY_KIND: Readonly<Record<ModelKind, KindModalities>> = {
  chat: flow(['text'], 'text'),
  embedding: flow(['text'], 'text'),
  rerank: flow(['text'], 'text'),
  moderation: flow(['text'], 'text'),
  image: flow(['text'], 'image'),
  image_edit: flow(['text', 'image'], 'image'),
  video: flow(['text'], 'video'),
  speech: flow(['text'], 'audio'),
  transcription: flow(['audio'], 'text'),
}

/** Facts of a model that lists show. Members are absent if they are not known. */
export type ListedFacts = Partial<KindModalities & Pick<VendorModel, 'abilities' | 'created'>>

/** Returns what the row of a model declares, then what the catalog knows of it, then what follows from its kinds. */
export function listedFacts(model: CatalogModel, source: ModelSource): ListedFacts {
  const known = source.facts?.(model.vendor, model.upstream)
  const kinds = model.kinds.flatMap((kind) => (Object.hasOwn(BY_KIND, kind) ? [BY_KIND[kind as ModelKind]] : []))
  const ofKinds = (name: keyof KindModalities): Pick<ListedFacts, typeof name> =>
    kinds.length === 0 ? {} : { [name]: [...new Set(kinds.flatMap((modalities) => modalities[name]))] }
  const { inputModalities, outputModalities, abilities } = model
  return {
    ...ofKinds('inputModalities'),
    ...ofKinds('outputModalities'),
    ...(model.kinds.includes('chat') ? { abilities: ['tool_call', 'structured_output', 'temperature'] } : {}),
    ...known,
    ...(inputModalities === undefined ? {} : { inputModalities }),
    ...(outputModalities === undefined ? {} : { outputModalities }),
    ...(abilities === undefined ? {} : { abilities }),
  }
}
