// Finds phrases in comments, pages, messages and names that a reader has to read twice. Part of `npm run lint`.
//
//  node test/architecture/check-prose.mjs [file…]
//
// Without files, it reads `src` and the pages. The rules and the accepted findings are in prose-rules.mjs.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { EXCEPTIONS, RULES } from './prose-rules.mjs'

const ROOT = join(import.meta.dirname, '../..')

/**
 * Returns what the rules find in a file, without regard to exceptions.
 * @param path Path from the root, with slashes; its ending says whether it is a page.
 */
export function findingsIn(path, text) {
  const sentences = path.endsWith('.md') ? sentencesOfPage(text) : sentencesOfSource(text)
  return sentences.flatMap(({ kind, line, text: sentence }) =>
    RULES.filter(({ kinds, pattern }) => kinds.includes(kind) && pattern.test(sentence)).map(({ name, advice }) => ({
      ...{ path, line, sentence, name, advice },
    })),
  )
}

/** Returns the findings that no exception accepts, and the exceptions that accept nothing. */
export function withoutExceptions(findings, exceptions = EXCEPTIONS) {
  const accepts = ({ file, part }, { path, sentence }) => file === path && sentence.includes(part)
  return {
    findings: findings.filter((finding) => !exceptions.some((exception) => accepts(exception, finding))),
    unused: exceptions.filter((exception) => !findings.some((finding) => accepts(exception, finding))),
  }
}

function sentencesOfSource(text) {
  const found = []
  let block
  const endBlock = () => {
    if (block !== undefined) found.push(...sentencesOfComment(block))
    block = undefined
  }
  for (const [index, line] of text.split('\n').entries()) {
    const number = index + 1
    if (block?.isOpen) {
      block.lines.push(line.replace(/\*\/.*/, '').replace(/^\s*\* ?/, ''))
      if (line.includes('*/')) endBlock()
      continue
    }
    const [, stars, opened] = /^\s*\/(\*\*?)(?!\/)(.*)/.exec(line) ?? []
    const [, remark] = /^\s*\/\/ ?(.*)/.exec(line) ?? []
    if (opened !== undefined) {
      endBlock()
      block = { isDoc: stars === '**', isOpen: true, line: number, lines: [opened.replace(/\*\/.*/, '').trim()] }
      if (opened.includes('*/')) endBlock()
    } else if (remark !== undefined) {
      block ??= { isDoc: false, isOpen: false, line: number, lines: [] }
      block.lines.push(remark)
    } else {
      endBlock()
      const [, constant] = /^\s*(?:export )?const ([A-Z][A-Z0-9_]+)\b/.exec(line) ?? []
      if (constant !== undefined) found.push({ kind: 'constant', line: number, text: constant })
      for (const [, message] of line.matchAll(/['"`]([^'"`]* must be [^'"`]*)['"`]/g))
        found.push({ kind: 'message', line: number, text: message })
    }
  }
  endBlock()
  return found
}

/** A tag of a docstring begins a sentence of its own; the name of a parameter is not part of it. */
function sentencesOfComment({ isDoc, line, lines }) {
  const paragraphs = []
  for (const [index, text] of lines.entries()) {
    const tag = /^@\w+(?: \w+(?= [A-Z`]))? ?/.exec(text)?.[0]
    const isItem = tag !== undefined || /^(?:- |\d\. )/.test(text)
    const isAfterBlank = (paragraphs.at(-1)?.text ?? '').trim() === ''
    const isNew = isItem || isAfterBlank || text.trim() === ''
    if (isNew) paragraphs.push({ line: line + index, text: text.slice(tag?.length ?? 0).replace(/^(?:- |\d\. )/, '') })
    else paragraphs.at(-1).text += ` ${text}`
  }
  const sentences = paragraphs.flatMap(sentencesOfParagraph)
  return sentences.map((sentence, index) => ({ kind: isDoc && index === 0 ? 'docstring' : 'comment', ...sentence }))
}

function sentencesOfPage(text) {
  const paragraphs = []
  let isCode = false
  let isOpen = false
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*```/.test(line)) isCode = !isCode
    if (isCode || /^\s*(?:```|$)|^---/.test(line)) {
      isOpen = false
      continue
    }
    if (line.startsWith('|')) {
      for (const cell of line.split('|')) paragraphs.push({ kind: 'page', line: index + 1, text: cell.trim() })
      isOpen = false
    } else if (isOpen && !/^\s*(?:[-*] |\d+\. |#)/.test(line)) paragraphs.at(-1).text += ` ${line.trim()}`
    else {
      const isHeading = line.startsWith('#')
      const words = line.replace(/^\s*(?:[-*] |\d+\. |#+ )/, '')
      paragraphs.push({ kind: isHeading ? 'heading' : 'page', line: index + 1, text: words })
      isOpen = !isHeading
    }
  }
  return paragraphs.flatMap((paragraph) =>
    sentencesOfParagraph(paragraph).map((sentence) => ({ kind: paragraph.kind, ...sentence })),
  )
}

/** Code, links and emphasis are not among a sentence's words. */
function sentencesOfParagraph({ line, text }) {
  const plain = text
    .replaceAll(/\{@link [^}]*\}|`[^`]*`/g, 'x')
    .replaceAll(/\]\([^)]*\)|\[|\*\*/g, '')
    .trim()
  return plain
    .split(/(?<=[.!?])\s+(?=["(A-Zx])/)
    .filter((sentence) => sentence !== '')
    .map((sentence) => ({ line, text: sentence }))
}

function filesToRead() {
  const below = (folder, pattern) =>
    readdirSync(join(ROOT, folder), { recursive: folder === 'src', encoding: 'utf8' })
      .filter((path) => pattern.test(path))
      .map((path) => `${folder}/${path.split(sep).join('/')}`)
  return [...below('src', /\.tsx?$/), ...below('docs', /\.md$/), 'README.md', 'CONTRIBUTING.md']
}

function main(named) {
  const paths =
    named.length === 0 ? filesToRead() : named.map((path) => relative(ROOT, resolve(path)).split(sep).join('/'))
  const found = paths.flatMap((path) => findingsIn(path, readFileSync(join(ROOT, path), 'utf8')))
  const { findings, unused } = withoutExceptions(found)
  for (const { path, line, name, sentence, advice } of findings)
    console.log(`${path}:${line}: ${name}: ${advice}\n    ${sentence}`)
  const stale = named.length === 0 ? unused : []
  for (const { file, part } of stale) console.log(`prose-rules.mjs: the exception of ${file} accepts nothing: ${part}`)
  console.log(`Checked the prose of ${paths.length} files: ${findings.length} findings.`)
  if (findings.length + stale.length > 0) process.exitCode = 1
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) main(process.argv.slice(2))
