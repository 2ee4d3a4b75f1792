import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const PROJECT = fileURLToPath(new URL('../', import.meta.url))

/**
 * Builds another revision of the project in a temporary git worktree, with the packages of the working tree. The worktree
 * is removed when this process ends.
 * @param {string} name anything that git resolves to a commit
 * @returns {{ commit: string, title: string, folder: string }} `title`: the commit in short; `folder`: the address of what was built
 * @throws Error if the commit does not exist or does not build
 */
export function buildRevision(name) {
  const commit = git('rev-parse', '--verify', '--end-of-options', `${name}^{commit}`)
  warnOfOtherPackages(commit)
  const parent = mkdtempSync(join(tmpdir(), 'signalbox-revision-'))
  const worktree = join(parent, 'project')
  process.once('exit', () => {
    git('worktree', 'remove', '--force', worktree)
    rmSync(parent, { recursive: true, force: true })
  })
  git('worktree', 'add', '--detach', worktree, commit)
  symlinkSync(join(PROJECT, 'node_modules'), join(worktree, 'node_modules'))
  const tsup = join(PROJECT, 'node_modules/tsup/dist/cli-default.js')
  execFileSync(process.execPath, [tsup, '--format', 'esm'], { cwd: worktree, stdio: ['ignore', 2, 2] })
  return { commit, title: commit.slice(0, 9), folder: pathToFileURL(join(worktree, 'dist/')).href }
}

/** Both builds run with the packages of the working tree, so changes of packages are not part of the comparison. */
function warnOfOtherPackages(commit) {
  if (git('diff', '--name-only', commit, '--', 'package-lock.json') === '') return
  process.stderr.write(
    `package-lock.json differs from ${commit.slice(0, 9)}: both builds run with what is installed here\n`,
  )
}

function git(...given) {
  return execFileSync('git', given, { cwd: PROJECT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()
}
