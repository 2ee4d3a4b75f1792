import type { ModelDefinition } from '../define-model.ts'
import type { ImageAbilities } from '../model.ts'

/** The eight of the API specification, and two of the vendor's own that it writes differently. Width and height in pixels. */
const SIZES = [
  '1024*1024',
  '1664*928',
  '1472*1140',
  '1472*1104',
  '1328*1328',
  '1140*1472',
  '1104*1472',
  '928*1664',
  '1280*720',
  '720*1280',
]

const FROM_TEXT: ImageAbilities = {
  sizes: SIZES,
  defaultSize: '1024*1024',
  referenceImages: { min: 0, max: 0 },
  maxImages: 1,
  answersWithUrls: true,
}
const FROM_TEXT_OR_IMAGES: ImageAbilities = { ...FROM_TEXT, referenceImages: { min: 0, max: 3 } }
const FROM_IMAGES: ImageAbilities = {
  sizes: SIZES,
  referenceImages: { min: 1, max: 3 },
  maxImages: 1,
  answersWithUrls: true,
}
/** DashScope, Qwen-Image editing: the first editing model has neither of the two. */
const FROM_IMAGES_AS_THEY_ARE: ImageAbilities = {
  referenceImages: { min: 1, max: 3 },
  maxImages: 1,
  refusedFields: ['size', 'prompt_extend'],
  answersWithUrls: true,
}

/**
 * Image models of the multimodal shape (API specification, "Multimodal image request"). The `qw-image-edit*` models edit
 * pictures but are called on the generations route, so their kind is `image`. The vendor's `2.0` models edit too. It could
 * make up to six pictures a request with some of them; the specification says one.
 */
export const MULTIMODAL_IMAGE_MODELS: readonly ModelDefinition[] = [
  qwenImage('2.0', 'Qwen Image 2.0', FROM_TEXT_OR_IMAGES),
  qwenImage('2.0-pro', 'Qwen Image 2.0 Pro', FROM_TEXT_OR_IMAGES),
  qwenImage('max', 'Qwen Image Max', FROM_TEXT),
  qwenImage('edit', 'Qwen Image Edit', FROM_IMAGES_AS_THEY_ARE),
  qwenImage('edit-plus', 'Qwen Image Edit Plus', FROM_IMAGES),
  qwenImage('edit-max', 'Qwen Image Edit Max', FROM_IMAGES),
]

function qwenImage(variant: string, displayName: string, image: ImageAbilities): ModelDefinition {
  const upstream = `qwen-image-${variant}`
  return {
    id: `qw-image-${variant}`,
    kind: 'image',
    vendor: 'dashscope',
    upstream,
    protocol: 'multimodal',
    image,
    aliases: [upstream],
    displayName,
  }
}
