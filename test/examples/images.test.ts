import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { imageHeader } from '../../src/wire/image-header.ts'
import { type Ended, endOfExample } from './support/run-example.ts'

const IMAGES = {
  'generation.png': { format: 'png', width: 1024, height: 1024 },
  'edit.webp': { format: 'webp', width: 1024, height: 1024 },
  'interaction.jpg': { format: 'jpeg', width: 1200, height: 896 },
  'multimodal.png': { format: 'png', width: 1664, height: 928 },
} as const

describe('the example images', () => {
  let folder: string
  let ended: Ended

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'signalbox-images-'))
    ended = await endOfExample('images', { IMAGES_FOLDER: folder })
  })
  afterAll(() => rm(folder, { recursive: true }))

  test('exits with status 0 and names its files', () => {
    expect(ended.code).toBe(0)
    for (const name of Object.keys(IMAGES)) expect(ended.output).toMatch(new RegExp(`^${name} \\d+ bytes$`, 'm'))
  })

  test('writes an image of every shape and nothing else', async () => {
    expect((await readdir(folder)).sort()).toEqual(Object.keys(IMAGES).sort())
  })

  test.each(Object.entries(IMAGES))('writes %s as an image of the requested size and format', async (name, facts) => {
    expect(imageHeader([await readFile(join(folder, name))])).toMatchObject(facts)
  })
})
