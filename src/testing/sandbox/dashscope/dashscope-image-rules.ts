/** Pixels of a picture. */
export interface PictureSize {
  readonly width: number
  readonly height: number
}

/** What one image model takes. */
export interface DashScopeImageRules {
  /** Pictures in a request. */
  readonly images: { readonly min: number; readonly max: number }
  readonly maxAnswers: number
  /** Undefined: the model has no `size` and no `prompt_extend`. */
  readonly takesSize: ((size: PictureSize) => boolean) | undefined
  /** Size of a picture made from text alone when none is asked for; undefined for models that only edit. */
  readonly textDefault: PictureSize | undefined
}

const FIXED_SIZES = ['1664*928', '1472*1104', '1328*1328', '1104*1472', '928*1664']
const WIDE: PictureSize = { width: 1664, height: 928 }
const SQUARE: PictureSize = { width: 2048, height: 2048 }

const byArea = ({ width, height }: PictureSize): boolean => width * height >= 512 ** 2 && width * height <= 2048 ** 2
const bySide = ({ width, height }: PictureSize): boolean =>
  Math.min(width, height) >= 512 && Math.max(width, height) <= 2048
const byList = ({ width, height }: PictureSize): boolean => FIXED_SIZES.includes(`${width}*${height}`)

const NONE = { min: 0, max: 0 }
const ANY = { min: 0, max: 3 }
const SOME = { min: 1, max: 3 }

/** By the longest beginning of the model's name, because dated ids follow the same rules. */
const RULES: readonly (readonly [name: string, rules: DashScopeImageRules])[] = [
  ['qwen-image-edit-plus', { images: SOME, maxAnswers: 6, takesSize: bySide, textDefault: undefined }],
  ['qwen-image-edit-max', { images: SOME, maxAnswers: 6, takesSize: bySide, textDefault: undefined }],
  ['qwen-image-edit', { images: SOME, maxAnswers: 1, takesSize: undefined, textDefault: undefined }],
  ['qwen-image-2.0', { images: ANY, maxAnswers: 6, takesSize: byArea, textDefault: SQUARE }],
  ['qwen-image-max', { images: NONE, maxAnswers: 1, takesSize: byArea, textDefault: WIDE }],
  ['qwen-image', { images: NONE, maxAnswers: 1, takesSize: byList, textDefault: WIDE }],
]

/** The rules of a model (DashScope, Qwen-Image text to image and image editing); undefined when there is no such model. */
export function imageRulesOf(model: string): DashScopeImageRules | undefined {
  return RULES.find(([name]) => model.startsWith(name))?.[1]
}
