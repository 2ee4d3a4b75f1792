import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { codeBlocks, prose, ROOT, readPage, readPages } from './support/markdown.ts'

const pages = readPages()

/** The anchor of a heading, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}

function anchorsOf(path: string): string[] {
  return [...prose(readPage(path)).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))
}

test('every relative link leads to a file, and to a heading in it', () => {
  const broken: string[] = []
  for (const page of pages) {
    for (const [, target = ''] of prose(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue
      const [file = '', anchor] = target.split('#')
      const path = file === '' ? page.path : normalize(join(dirname(page.path), file))
      const isThere = existsSync(join(ROOT, path)) && (anchor === undefined || anchorsOf(path).includes(anchor))
      if (!isThere) broken.push(`${page.path} -> ${target}`)
    }
  }

  expect(broken).toEqual([])
})

test('every file and folder of the project that a page names exists', () => {
  const missing: string[] = []
  for (const page of pages) {
    for (const [, path = ''] of prose(page).matchAll(/`((?:src|test|examples|docs|bench)\/[\w./*-]+)`/g)) {
      const pattern = path.replace(/\/$/, '')
      if (!exists(pattern)) missing.push(`${page.path}: ${path}`)
    }
  }

  expect(missing).toEqual([])
})

/** A path, or one with `*` for a whole segment. */
function exists(path: string): boolean {
  const star = path.split('/').indexOf('*')
  if (star === -1) return existsSync(join(ROOT, path))
  const segments = path.split('/')
  const folder = join(ROOT, ...segments.slice(0, star))
  return (
    existsSync(folder) &&
    readdirSync(folder).some((name) => exists(segments.map((s, i) => (i === star ? name : s)).join('/')))
  )
}

test('the README links to every page of the documentation', () => {
  const readme = readPage('README.md').text

  expect(
    pages.map((page) => page.path).filter((path) => path !== 'README.md' && !readme.includes(`(${path})`)),
  ).toEqual([])
})

test('every entry of the package is shown in use on some page', () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { exports: Record<string, unknown> }
  const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json')
  const code = pages.flatMap(codeBlocks).map((block) => block.code)

  const unknown = entries
    .map((entry) => `signalbox${entry.slice(1)}`)
    .filter((name) => !code.some((text) => text.includes(`'${name}'`)))

  expect(entries.length).toBeGreaterThan(3)
  expect(unknown).toEqual([])
})
