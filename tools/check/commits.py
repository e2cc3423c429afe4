"""Checks the subjects of commits: an imperative verb first, at most 72 characters (docs/style.md, "Commits").

Usage: commits.py [ROOT [COMMIT]]    Prints one line for each subject that is wrong; exit 1 if there are any, or if git fails.

It looks at the commits after COMMIT, the last one before the rule, merges excepted. A verb that is missing below belongs
into the list. Without git, and in a shallow clone without COMMIT, it says so and checks nothing.
"""

import pathlib
import shutil
import subprocess
import sys

LAST_BEFORE = "9a18f9fac83b4e229f4a634b6c13fbe9c9391e8e"
MOST = 72

VERBS = set("""
    Abort Accept Adapt Add Adjust Advance Agree Align Allocate Allow Announce Answer Append Apply Arrange Ask Assert
    Assign Attach Attend Avoid Back Balance Begin Bind Bound Break Bring Build Bump Cache Calculate Call Cancel Cap Carry Catch
    Change Check Choose Clarify Clean Clear Clip Clone Close Collect Combine Commit Compare Compile Complete Compress
    Compute Configure Confirm Connect Consider Contain Continue Convert Copy Correct Count Cover Create Cut Deal Decide
    Declare Default Defer Define Delay Delete Deny Derive Describe Detach Detect Disable Disallow Discard Distinguish
    Distribute Divide Do Document Double Draw Drop Dump Duplicate Emit Empty Enable Encode End Enforce Ensure Enter
    Estimate Evaluate Exchange Exclude Execute Exercise Expect Explain Export Expose Extend Extract Fail Fetch Fill
    Filter Find Finish Fit Fix Flatten Flush Fold Follow Forbid Forget Format Forward Free Freeze Fuse Gather Generate
    Get Give Go Grow Guard Hand Handle Hide Hoist Hold Identify Ignore Implement Import Improve Include Increase Infer Inline
    Insert Inspect Install Instantiate Instrument Introduce Invert Isolate Join Judge Keep Kill Label Launch Leave
    Lengthen Let Lift Limit Link List Listen Load Lock Log Look Loosen Lower Maintain Make Map Mark Match Measure
    Mention Merge Mirror Mock Model Move Name Narrow Need Note Notice Number Offer Omit Open Optimise Optimize Order
    Overlap Overwrite Pack Pad Parallelise Parse Partition Pass Paste Perform Pin Place Plan Plot Point Poll Port Prefer
    Prefetch Prepare Preserve Prevent Print Probe Process Profile Promise Propose Protect Prove Provide Prune Publish Pull Push
    Put Query Quote Raise Randomise Read Realign Rebuild Recognise Recognize Recompute Record Recover Redirect Reduce
    Refactor Refer Refresh Refuse Register Reject Release Reload Rely Remember Remove Rename Reorder Repair Repeat
    Rephrase Replace Reply Report Represent Require Rerun Reserve Reset Reshape Resolve Respect Restart Restore Restrict
    Resume Retry Return Reuse Revert Review Reword Rewrite Rotate Round Route Run Sample Save Say Scale Scan Scatter Schedule
    Search Select Send Separate Serialise Serialize Serve Set Share Ship Shorten Show Shrink Shuffle Sign Silence
    Simplify Skip Sleep Sort Specialise Specialize Specify Speed Split Stage Start State Stop Store Stream Strengthen
    Strip Submit Subtract Suggest Sum Support Suppress Swap Switch Sync Synchronise Synchronize Synthesise Take Talk Teach Tell
    Terminate Test Tidy Tie Tighten Time Tokenize Tolerate Touch Trace Track Train Transform Translate Treat Trim Trust Try Tune
    Turn Type Unify Uninstall Unload Unlock Unpack Unroll Update Upgrade Use Validate Vary Vectorise Vectorize Verify
    Wait Wake Walk Warn Watch Weaken Weigh Widen Wire Wrap Write Zero
    """.split())


def fault(subject: str) -> str | None:
    """What is wrong with a subject; None if it is in order."""
    if len(subject) > MOST:
        return f"{len(subject)} characters, {MOST} at most"
    first = subject.split(" ")[0]
    if first not in VERBS:
        return f"`{first}` is not a verb that tools/check/commits.py knows; a subject is imperative: `Add a check`"
    return None


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    last_before = sys.argv[2] if len(sys.argv) > 2 else LAST_BEFORE
    # The repository may belong to another user, as in a container.
    git = ["git", "-C", str(root), "-c", f"safe.directory={root}"]
    if not (root / ".git").exists():
        print(f"skipped: {root} is not a clone")
        return 0
    if not shutil.which("git"):
        print("skipped: git is not installed")
        return 0
    reaches = subprocess.run([*git, "merge-base", "--is-ancestor", last_before, "HEAD"], capture_output=True, text=True)
    if reaches.returncode:
        shallow = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
        is_shallow = shallow.stdout == "true\n"
        print(f"{'skipped: ' if is_shallow else ''}the history of {root} does not reach back to {last_before[:7]}", reaches.stderr)
        return 0 if is_shallow else 1
    log = subprocess.run([*git, "log", "--no-merges", "--format=%h %s", f"{last_before}..HEAD"],
                         capture_output=True, text=True, check=True)
    is_faulty = False
    for commit, subject in (line.split(" ", 1) for line in log.stdout.splitlines()):
        if text := fault(subject):
            print(f"{commit} {subject}: {text}")
            is_faulty = True
    return 1 if is_faulty else 0


if __name__ == "__main__":
    sys.exit(main())
