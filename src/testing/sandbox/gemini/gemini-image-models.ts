/** What an image model of Google's takes and gives. */
export interface GeminiImageModel {
  /** As the wire names them; the value is the tokens of one picture. */
  readonly sizes: ReadonlyMap<string, number>
  readonly ratios: readonly string[]
  /** Empty: the model knows no levels. */
  readonly thinkingLevels: readonly string[]
  /** Does it think even when no level is asked for? */
  readonly alwaysThinks: boolean
  readonly maxReferences: number
  readonly tokensPerReference: number
  /** Pixel sizes at 1K by ratio, where they are not the usual ones. */
  readonly pixels?: ReadonlyMap<string, readonly [width: number, height: number]>
}

const TEN_RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9']
const FOURTEEN_RATIOS = [...TEN_RATIOS, '1:4', '4:1', '1:8', '8:1']

const FLASH: GeminiImageModel = {
  sizes: new Map([
    ['512', 747],
    ['1K', 1120],
    ['2K', 1680],
    ['4K', 2520],
  ]),
  ratios: FOURTEEN_RATIOS,
  thinkingLevels: ['minimal', 'high'],
  alwaysThinks: false,
  maxReferences: 14,
  tokensPerReference: 1120,
}

const PRO: GeminiImageModel = {
  sizes: new Map([
    ['1K', 1120],
    ['2K', 1120],
    ['4K', 2000],
  ]),
  ratios: TEN_RATIOS,
  thinkingLevels: ['minimal', 'high'],
  alwaysThinks: true,
  maxReferences: 14,
  tokensPerReference: 560,
}

const FLASH_2_5: GeminiImageModel = {
  sizes: new Map([['1K', 1290]]),
  ratios: TEN_RATIOS,
  thinkingLevels: [],
  alwaysThinks: false,
  maxReferences: 3,
  tokensPerReference: 258,
  pixels: new Map([
    ['1:1', [1024, 1024]],
    ['2:3', [832, 1248]],
    ['3:4', [864, 1184]],
    ['4:5', [896, 1152]],
    ['9:16', [768, 1344]],
    ['21:9', [1536, 672]],
  ]),
}

// Pixels at 1K (Gemini API, "Image generation"); other ratios are transposes.
const PIXELS_1K: ReadonlyMap<string, readonly [width: number, height: number]> = new Map([
  ['1:1', [1024, 1024]],
  ['1:4', [512, 2048]],
  ['1:8', [384, 3072]],
  ['2:3', [848, 1264]],
  ['3:4', [896, 1200]],
  ['4:5', [928, 1152]],
  ['9:16', [768, 1376]],
  ['21:9', [1584, 672]],
])

// Not simply halves of those at 1K. The printed size of 21:9 does not fit its ratio; half of 1K is taken.
const PIXELS_512: ReadonlyMap<string, readonly [width: number, height: number]> = new Map([
  ['1:1', [512, 512]],
  ['1:4', [256, 1024]],
  ['1:8', [192, 1536]],
  ['2:3', [424, 632]],
  ['3:4', [448, 600]],
  ['4:5', [464, 576]],
  ['9:16', [384, 688]],
  ['21:9', [792, 336]],
])

const SCALES: ReadonlyMap<string, number> = new Map([
  ['1K', 1],
  ['2K', 2],
  ['4K', 4],
])

/** The facts of a model; the widest for an id that says nothing. */
export function geminiImageModel(model: string): GeminiImageModel {
  if (model.startsWith('gemini-2.5')) return FLASH_2_5
  return model.includes('-pro') ? PRO : FLASH
}

/** Width and height of a picture. `size` and `ratio` must be ones that the model has. */
export function picturePixels(model: GeminiImageModel, size: string, ratio: string): readonly [number, number] {
  const table = size === '512' ? PIXELS_512 : (model.pixels ?? PIXELS_1K)
  const scale = SCALES.get(size) ?? 1
  const [width, height] = table.get(ratio) ?? transposed(table.get(ratio.split(':').reverse().join(':')))
  return [width * scale, height * scale]
}

function transposed(pixels: readonly [number, number] = [1024, 1024]): readonly [number, number] {
  return [pixels[1], pixels[0]]
}
